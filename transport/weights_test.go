package transport_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/core/weight"
	"github.com/mooncake-go/mooncake-master/transport"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// original is a master whose answers are written to testdata/weights: go test -run TestWeights
// -args -original PATH, with the environment that it needs.
var original = flag.String("original", "", "path of the original master, whose answers are recorded")

// TestWeights plays the scripts of testdata/weights and compares every answer with that of the
// released 0.3.14 master.
func TestWeights(t *testing.T) {
	scripts, err := filepath.Glob("../testdata/weights/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			commands, flags := scriptCommands(string(text))
			var world *weightWorld
			if *original != "" {
				world = released(t, *original, flags)
			} else {
				world = ours(t, flags)
			}
			got := world.play(t, commands)
			if *original != "" {
				if err := os.WriteFile(script, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("answers differ from those of the original:\n%s", differing(string(text), got))
			}
		})
	}
}

// scriptCommands returns the lines of a script without its answers, and the flags it asks for.
func scriptCommands(text string) (commands, flags []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if f, ok := strings.CutPrefix(line, "flags "); ok {
			flags = strings.Fields(f)
		}
		if !strings.HasPrefix(line, "  ") {
			commands = append(commands, line)
		}
	}
	return commands, flags
}

func differing(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	for i := range max(len(w), len(g)) {
		var x, y string
		if i < len(w) {
			x = w[i]
		}
		if i < len(g) {
			y = g[i]
		}
		if x == y {
			fmt.Fprintf(&b, " %s\n", x)
		} else {
			fmt.Fprintf(&b, "-%s\n+%s\n", x, y)
		}
	}
	return b.String()
}

// weightWorld is a master to play a script on.
type weightWorld struct {
	client *rpc.Client
	sleep  func(time.Duration)
	wall   func() uint64 // milliseconds
}

func ours(t *testing.T, flags []string) *weightWorld {
	cfg := core.Default()
	cfg.EvictionWatermark = 1
	for _, f := range flags {
		switch name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "="); name {
		case "weight_import_idle_timeout_ms":
			ms, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			cfg.WeightImportIdle = time.Duration(ms) * time.Millisecond
		case "eviction_high_watermark_ratio":
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			cfg.EvictionWatermark = v
		case "enable_multi_tenants":
			cfg.MultiTenant = true
		case "enable_offload":
			cfg.Offload.Enabled = true
		case "promotion_on_hit":
			cfg.Promotion.OnHit = true
		case "default_kv_lease_ttl":
			cfg.LeaseTTL = 100 * time.Millisecond
		default:
			t.Fatalf("flag %q", f)
		}
	}
	clock := mastertest.NewClock()
	wall := func() int64 { return 1_700_000_000_000 + clock.Now()/1e6 }
	m, err := core.New(cfg, core.Deps{Clock: clock, Rand: mastertest.NewRand(1), Log: hclog.NewNullLogger(), Wall: wall})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Check(); err != nil {
			t.Error(err)
		}
	})
	if cfg.MultiTenant {
		m.ApplyPolicies([]tenant.Policy{{Name: "default", Quota: 16 << 20}, {Name: "team", Quota: 16 << 20}})
	}
	s, err := rpc.NewServer(rpc.Options{Now: time.Now, MaxFrame: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	transport.Bind(s, m)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Shutdown(context.WithoutCancel(t.Context())) })
	w := &weightWorld{client: dial(t, l.Addr().String()), wall: func() uint64 { return uint64(wall()) }}
	w.sleep = func(d time.Duration) {
		for ; d > 0; d -= 100 * time.Millisecond {
			clock.Set(min(d, 100*time.Millisecond))
			m.Step()
		}
	}
	return w
}

func dial(t *testing.T, address string) *rpc.Client {
	t.Helper()
	var c *rpc.Client
	var err error
	for range 100 {
		if c, err = rpc.Dial(t.Context(), address); err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal(err)
	return nil
}

// weightPolicies is who may write in scripts with strict tenants.
const weightPolicies = "version: 1\ntenants:\n  - name: default\n    quota: 16MB\n  - name: team\n    quota: 16MB\n"

// released starts the original.
func released(t *testing.T, path string, flags []string) *weightWorld {
	var ports [2]string
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, ports[i], _ = net.SplitHostPort(l.Addr().String())
		_ = l.Close()
	}
	args := append([]string{"--rpc_port=" + ports[0], "--metrics_port=" + ports[1], "--eviction_high_watermark_ratio=1"}, flags...)
	if slices.Contains(flags, "--enable_multi_tenants=true") {
		policy := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(policy, []byte(weightPolicies), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--tenant_quota_connector_type=file", "--tenant_quota_connector_uri="+policy)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	return &weightWorld{client: dial(t, "127.0.0.1:"+ports[0]), sleep: time.Sleep, wall: func() uint64 { return uint64(time.Now().UnixMilli()) }}
}

func (w *weightWorld) play(t *testing.T, commands []string) string {
	var b strings.Builder
	for _, line := range commands {
		b.WriteString(line + "\n")
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" || words[0] == "flags" {
			continue
		}
		answer, err := w.command(t.Context(), words[0], words[1:])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		s := bufio.NewScanner(strings.NewReader(answer))
		for s.Scan() {
			b.WriteString("  " + s.Text() + "\n")
		}
	}
	return b.String()
}

var (
	writer    = segment.UUID{First: 1, Second: 1}
	dataTypes = map[string]object.DataType{"": 1, "weight": 3, "metadata": 8}
)

// command runs one line of a script. A revision is written tenant/namespace/resource/revision/generation,
// or short revision.generation for default/ns/model; %20 and the like stand for bytes.
func (w *weightWorld) command(ctx context.Context, verb string, args []string) (string, error) {
	named := map[string]string{}
	var plain []string
	for _, a := range args {
		if name, value, ok := strings.Cut(a, "="); ok {
			named[name] = value
		} else {
			plain = append(plain, a)
		}
	}
	number := func(name string) uint64 { n, _ := strconv.ParseUint(named[name], 10, 64); return n }
	arg := func(i int) string {
		if i < len(plain) {
			return plain[i]
		}
		return ""
	}
	tenant := named["as"]
	if tenant == "" {
		tenant = "default"
	}
	id := identity(arg(0))
	ref := wire.WeightRevisionRef{Identity: id, ExpectedMetadataGeneration: number("gen")}
	switch verb {
	case "mount":
		size, _ := strconv.Atoi(arg(1))
		info := segment.Info{ID: writer, Name: arg(0), Base: 1 << 32, Size: uint64(size) << 20, Endpoint: arg(0), Protocol: "tcp"}
		var a errcode.Result[errcode.Void]
		if err := rpc.Invoke(ctx, w.client, wire.MountSegment, &wire.MountSegmentRequest{Segment: info, ClientID: writer}, &a); err != nil {
			return "", err
		}
		return w.remount(ctx, info)
	case "sleep":
		d, err := time.ParseDuration(arg(0))
		for ; err == nil && d > 0; d -= 2 * time.Second {
			w.sleep(min(d, 2*time.Second))
			_, err = w.ping(ctx)
		}
		return "", err
	case "put", "start", "upsert":
		return w.put(ctx, verb, arg(0), arg(1), named)
	case "end":
		return call(ctx, w.client, wire.PutEnd, wire.PutEndRequest{ClientID: writer, ObjectMeta: object.Meta{Key: key(arg(0))}, ReplicaType: object.ReplicaMemory, TenantID: tenant}, codeText)
	case "revoke":
		return call(ctx, w.client, wire.PutRevoke, wire.PutRevokeRequest{ClientID: writer, Key: key(arg(0)), ReplicaType: object.ReplicaMemory, TenantID: tenant}, codeText)
	case "exist":
		return call(ctx, w.client, wire.ExistKey, wire.ExistKeyRequest{Key: key(arg(0)), TenantID: tenant}, func(r errcode.Result[bool]) string { return fmt.Sprint(r.Code, " ", r.Value) })
	case "remove":
		return call(ctx, w.client, wire.Remove, wire.RemoveRequest{Key: key(arg(0)), Force: named["force"] == "yes", TenantID: tenant}, codeText)
	case "batchremove":
		return call(ctx, w.client, wire.BatchRemove, wire.BatchRemoveRequest{Keys: []string{key(arg(0))}, Force: named["force"] == "yes", TenantID: tenant}, func(r []errcode.Result[errcode.Void]) string { return codeText(r[0]) })
	case "removeall":
		return call(ctx, w.client, wire.RemoveAll, wire.RemoveAllRequest{Force: named["force"] == "yes", TenantID: tenant}, func(n int64) string { return fmt.Sprint("removed ", n) })
	case "removeregex":
		return call(ctx, w.client, wire.RemoveByRegex, wire.RemoveByRegexRequest{Regex: arg(0), Force: named["force"] == "yes", TenantID: tenant}, func(r errcode.Result[int64]) string { return fmt.Sprint(r.Code, " ", r.Value) })
	case "mountdisk":
		return call(ctx, w.client, wire.MountLocalDiskSegment, wire.MountLocalDiskSegmentRequest{ClientID: writer, EnableOffloading: true}, codeText)
	case "unmount":
		return call(ctx, w.client, wire.UnmountSegment, wire.UnmountSegmentRequest{SegmentID: writer, ClientID: writer}, codeText)
	case "offloads":
		return call(ctx, w.client, wire.OffloadObjectHeartbeat, wire.OffloadObjectHeartbeatRequest{ClientID: writer, EnableOffloading: true}, func(r errcode.Result[[]wire.OffloadTaskItem]) string {
			keys := []string{fmt.Sprint(r.Code)}
			for _, i := range r.Value {
				keys = append(keys, fmt.Sprintf("%s/%s/%d", i.TenantID, i.Key, i.Size))
			}
			slices.Sort(keys[1:])
			return strings.Join(keys, " ")
		})
	case "offloaded":
		size, _ := strconv.ParseInt(arg(1), 10, 64)
		q := wire.NotifyOffloadSuccessRequest{
			ClientID: writer, Tasks: []wire.OffloadTaskItem{{TenantID: tenant, Key: key(arg(0)), Size: size}},
			Metadatas: []wire.StorageObjectMetadata{{KeySize: int64(len(key(arg(0)))), DataSize: size, TransportEndpoint: "disk"}},
		}
		return call(ctx, w.client, wire.NotifyOffloadSuccess, q, codeText)
	case "promotions":
		count, _ := strconv.Atoi(arg(0))
		var all []string
		for range max(1, count) {
			answer, err := call(ctx, w.client, wire.PromotionObjectHeartbeat, wire.PromotionObjectHeartbeatRequest{ClientID: writer}, func(r errcode.Result[[]wire.PromotionTaskItem]) string {
				text := fmt.Sprint(r.Code)
				for _, i := range r.Value {
					text += fmt.Sprintf(" %s/%s/%d", i.TenantID, i.Key, i.Size)
				}
				return text
			})
			if err != nil {
				return "", err
			}
			all = append(all, answer)
		}
		slices.Sort(all)
		return strings.Join(all, "\n"), nil
	case "promote":
		size, _ := strconv.ParseUint(arg(1), 10, 64)
		q := wire.PromotionAllocStartRequest{ClientID: writer, Key: key(arg(0)), TenantID: tenant, Size: size}
		answer, err := call(ctx, w.client, wire.PromotionAllocStart, q, func(r errcode.Result[wire.PromotionAlloc]) string { return fmt.Sprint(r.Code) })
		if err != nil || answer != fmt.Sprint(errcode.OK) {
			return answer, err
		}
		return call(ctx, w.client, wire.NotifyPromotionSuccess, wire.NotifyPromotionSuccessRequest{ClientID: writer, Key: key(arg(0)), TenantID: tenant}, codeText)
	case "evictdisk":
		return call(ctx, w.client, wire.EvictDiskReplica, wire.EvictDiskReplicaRequest{ClientID: writer, Key: key(arg(0)), TenantID: tenant, ReplicaType: object.ReplicaLocalDisk}, codeText)
	case "begin":
		q := wire.WeightImportBegin{Identity: id, PayloadGroupID: group(named["group"]), ExpectedPayloadCount: number("count"), ExpectedLogicalBytes: number("bytes")}
		return call(ctx, w.client, wire.BeginWeightImport, wire.BeginWeightImportRequest{Request: q, TenantID: tenant}, metadataText)
	case "commit":
		q := wire.WeightImportCommit{Identity: id, ExpectedMetadataGeneration: ref.ExpectedMetadataGeneration, Manifest: manifest(id, named)}
		return call(ctx, w.client, wire.CommitWeightImport, wire.CommitWeightImportRequest{Request: q, TenantID: tenant}, metadataText)
	case "abort":
		return call(ctx, w.client, wire.AbortWeightImport, wire.AbortWeightImportRequest{Request: ref, TenantID: tenant}, metadataText)
	case "delete":
		return call(ctx, w.client, wire.DeleteWeightRevision, wire.DeleteWeightRevisionRequest{Request: ref, TenantID: tenant}, metadataText)
	case "get":
		return call(ctx, w.client, wire.GetWeightRevision, wire.GetWeightRevisionRequest{Request: wire.WeightLookup{Identity: id}, TenantID: tenant}, func(r wire.WeightResult[wire.WeightRevision]) string {
			return weightText(r.Code, func() string { return w.revisionText(&r.Value) })
		})
	case "list":
		q := wire.WeightQuery{TenantID: tenantOf(named, tenant), Namespace: key(named["ns"]), ResourceID: key(named["res"]), PageToken: key(named["token"]), Limit: uint32(number("limit"))}
		return call(ctx, w.client, wire.ListWeightRevisions, wire.ListWeightRevisionsRequest{Request: q, TenantID: tenant}, func(r wire.WeightResult[wire.WeightRevisionPage]) string {
			return weightText(r.Code, func() string {
				var b strings.Builder
				for i := range r.Value.Revisions {
					fmt.Fprintln(&b, w.revisionText(&r.Value.Revisions[i]))
				}
				return b.String() + fmt.Sprintf("next %q", r.Value.NextPageToken)
			})
		})
	case "acquire":
		q := wire.WeightLeaseAcquire{Identity: id, ExpectedMetadataGeneration: ref.ExpectedMetadataGeneration, Holder: key(named["holder"]), TTLMs: number("ttl")}
		return call(ctx, w.client, wire.AcquireWeightRevisionLease, wire.AcquireWeightRevisionLeaseRequest{Request: q, TenantID: tenant}, w.leaseText)
	case "renew":
		q := wire.WeightLeaseRenew{TenantID: tenantOf(named, tenant), LeaseID: number("lease"), TTLMs: number("ttl")}
		return call(ctx, w.client, wire.RenewWeightRevisionLease, wire.RenewWeightRevisionLeaseRequest{Request: q, TenantID: tenant}, w.leaseText)
	case "release":
		q := wire.WeightLeaseRef{TenantID: tenantOf(named, tenant), LeaseID: number("lease")}
		return call(ctx, w.client, wire.ReleaseWeightRevisionLease, wire.ReleaseWeightRevisionLeaseRequest{Request: q, TenantID: tenant}, func(r wire.WeightResult[errcode.Void]) string {
			return weightText(r.Code, func() string { return "released" })
		})
	case "move":
		n, _ := strconv.Atoi(named["to"])
		q := wire.WeightResidencyStart{Identity: id, ExpectedMetadataGeneration: ref.ExpectedMetadataGeneration, TargetResidency: wire.WeightResidency(n)}
		return call(ctx, w.client, wire.StartWeightResidencyOperation, wire.StartWeightResidencyOperationRequest{Request: q, TenantID: tenant}, jobText)
	case "query":
		q := wire.WeightOperationRef{TenantID: tenantOf(named, tenant), OperationID: number("op")}
		return call(ctx, w.client, wire.QueryWeightOperation, wire.QueryWeightOperationRequest{Request: q, TenantID: tenant}, jobText)
	}
	return "", fmt.Errorf("no command %q", verb)
}

func call[Q, A any](ctx context.Context, c *rpc.Client, row *wire.RPC[Q, A], q Q, text func(A) string) (string, error) {
	var a A
	if err := rpc.Invoke(ctx, c, row, &q, &a); err != nil {
		return "", err
	}
	return text(a), nil
}

func codeText(r errcode.Result[errcode.Void]) string { return fmt.Sprint(r.Code) }

func (w *weightWorld) remount(ctx context.Context, info segment.Info) (string, error) {
	if _, err := call(ctx, w.client, wire.ReMountSegment, wire.ReMountSegmentRequest{Segments: []segment.Info{info}, ClientID: writer}, codeText); err != nil {
		return "", err
	}
	return w.ping(ctx)
}

func (w *weightWorld) ping(ctx context.Context) (string, error) {
	return call(ctx, w.client, wire.Ping, wire.PingRequest{ClientID: writer}, func(errcode.Result[wire.PingReply]) string { return "" })
}

func (w *weightWorld) put(ctx context.Context, verb, name, size string, named map[string]string) (string, error) {
	n, err := strconv.ParseUint(size, 10, 64)
	if err != nil {
		return "", err
	}
	tenant := named["as"]
	if tenant == "" {
		tenant = "default"
	}
	config := object.ReplicateConfig{ReplicaNum: 1, DataType: dataTypes[named["type"]]}
	if g := named["group"]; g != "" {
		config.GroupIDs = &[]string{group(g)}
	}
	code := func(r errcode.Result[[]object.ReplicaDescriptor]) string { return fmt.Sprint(r.Code) }
	var answer string
	if verb == "upsert" {
		answer, err = call(ctx, w.client, wire.UpsertStart, wire.UpsertStartRequest{ClientID: writer, Key: key(name), SliceLength: n, Config: config, TenantID: tenant}, code)
	} else {
		answer, err = call(ctx, w.client, wire.PutStart, wire.PutStartRequest{ClientID: writer, Key: key(name), SliceLength: n, Config: config, TenantID: tenant}, code)
	}
	if err != nil || verb == "start" || answer != fmt.Sprint(errcode.OK) {
		return answer, err
	}
	return call(ctx, w.client, wire.PutEnd, wire.PutEndRequest{ClientID: writer, ObjectMeta: object.Meta{Key: key(name)}, ReplicaType: object.ReplicaMemory, TenantID: tenant}, codeText)
}

// identity reads a revision.
func identity(s string) wire.WeightIdentity {
	if parts := strings.Split(s, "/"); len(parts) == 5 {
		n, _ := strconv.ParseUint(parts[4], 10, 64)
		return wire.WeightIdentity{TenantID: key(parts[0]), Namespace: key(parts[1]), ResourceID: key(parts[2]), Revision: key(parts[3]), WeightGeneration: n}
	}
	revision, generation, _ := strings.Cut(s, ".")
	n, _ := strconv.ParseUint(generation, 10, 64)
	return wire.WeightIdentity{TenantID: "default", Namespace: "ns", ResourceID: "model", Revision: key(revision), WeightGeneration: n}
}

// key reads a text: %41 is a byte, *N at the end repeats what is before it, @R the manifest of a revision.
func key(s string) string {
	if r, ok := strings.CutPrefix(s, "@"); ok {
		id := weight.Identity(identity(r))
		return id.ManifestKey()
	}
	if text, n, ok := strings.Cut(s, "*"); ok {
		times, _ := strconv.Atoi(n)
		return strings.Repeat(text, times)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			n, _ := strconv.ParseUint(s[i+1:i+3], 16, 8)
			b.WriteByte(byte(n))
			i += 2
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// group reads the id of a group: @R is that of a revision.
func group(s string) string {
	if r, ok := strings.CutPrefix(s, "@"); ok {
		id := weight.Identity(identity(r))
		return id.PayloadGroup()
	}
	return key(s)
}

func tenantOf(named map[string]string, other string) string {
	if t, ok := named["tenant"]; ok {
		return key(t)
	}
	return other
}

// manifest is that of a revision, with what is named instead.
func manifest(id wire.WeightIdentity, named map[string]string) wire.WeightManifest {
	own := weight.Identity(id)
	m := wire.WeightManifest{ManifestKey: own.ManifestKey(), ManifestSHA256: strings.Repeat("ab", 32), PayloadGroupID: own.PayloadGroup()}
	m.PayloadCount, _ = strconv.ParseUint(named["count"], 10, 64)
	m.LogicalBytes, _ = strconv.ParseUint(named["bytes"], 10, 64)
	if v, ok := named["keys"]; ok {
		m.PayloadKeysSHA256 = weight.KeysDigest(strings.Split(v, ","))
	}
	if v, ok := named["keysha"]; ok {
		m.PayloadKeysSHA256 = key(v)
	}
	if v, ok := named["sha"]; ok {
		m.ManifestSHA256 = key(v)
	}
	if v, ok := named["manifest"]; ok {
		m.ManifestKey = key(v)
	}
	if v, ok := named["group"]; ok {
		m.PayloadGroupID = group(v)
	}
	return m
}

var (
	weightErrors   = []string{"ok", "invalid argument", "not found", "conflict", "stale generation", "not ready", "busy", "lease expired", "generation exhausted", "durability failed"}
	availabilities = []string{"importing", "ready", "degraded", "deleting", "deleted"}
	residencies    = []string{"unknown", "hot", "cold", "mixed", "absent"}
	operations     = []string{"none", "evicting", "rehydrating", "repairing"}
)

func weightText(code wire.WeightError, value func() string) string {
	if code != 0 {
		return weightErrors[code]
	}
	return value()
}

func metadataText(r wire.WeightResult[wire.WeightMetadata]) string {
	return weightText(r.Code, func() string { return revisionState(&r.Value) })
}

// revisionState is everything but the times, which are only put in relation.
func revisionState(m *wire.WeightMetadata) string {
	own := weight.Identity(m.Identity)
	name := fmt.Sprintf("%s/%s/%s/%s/%d", m.Identity.TenantID, m.Identity.Namespace, m.Identity.ResourceID, m.Identity.Revision, m.Identity.WeightGeneration)
	var odd []string
	if m.Manifest.PayloadGroupID != own.PayloadGroup() {
		odd = append(odd, "group="+m.Manifest.PayloadGroupID)
	}
	if m.Manifest.ManifestKey != "" && m.Manifest.ManifestKey != own.ManifestKey() {
		odd = append(odd, "manifest="+m.Manifest.ManifestKey)
	}
	if m.UpdatedAtMs < m.CreatedAtMs || m.CreatedAtMs == 0 {
		odd = append(odd, "times wrong")
	}
	slices.Sort(odd)
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s op=%d gen=%d manifest=%t sha=%.4s keys=%.8s count=%d bytes=%d %s", name, availabilities[m.Availability], residencies[m.Residency], operations[m.Operation],
		m.OperationID, m.MetadataGeneration, m.Manifest.ManifestKey != "", m.Manifest.ManifestSHA256, m.Manifest.PayloadKeysSHA256, m.Manifest.PayloadCount, m.Manifest.LogicalBytes, strings.Join(odd, " ")))
}

func (w *weightWorld) revisionText(r *wire.WeightRevision) string {
	nearest := "never"
	if r.NearestLeaseExpiryMs != nil {
		nearest = w.until(*r.NearestLeaseExpiryMs)
	}
	return fmt.Sprintf("%s; leases %d, nearest %s", revisionState(&r.Metadata), r.ActiveLeaseCount, nearest)
}

// until is how far in the future an instant is, to half a second.
func (w *weightWorld) until(ms uint64) string {
	left := time.Duration(int64(ms)-int64(w.wall())) * time.Millisecond
	return (left + 200*time.Millisecond).Truncate(500 * time.Millisecond).String()
}

func (w *weightWorld) leaseText(r wire.WeightResult[wire.WeightLease]) string {
	return weightText(r.Code, func() string {
		l := &r.Value
		return fmt.Sprintf("lease %d of %s/%d for %q at %d ends in %s", l.LeaseID, l.Identity.Revision, l.Identity.WeightGeneration, l.Holder, l.FencedMetadataGeneration, w.until(l.ExpiresAtMs))
	})
}

func jobText(r wire.WeightResult[wire.WeightResidencyJob]) string {
	return weightText(r.Code, func() string {
		j := &r.Value
		return fmt.Sprintf("op %d of %s/%d %s to %s at %d: %d of %d, cursor %q, message %q", j.OperationID, j.Identity.Revision, j.Identity.WeightGeneration, operations[j.Operation], residencies[j.TargetResidency],
			j.FencedMetadataGeneration, j.ProcessedMembers, j.TotalMembers, j.Cursor, j.Message)
	})
}

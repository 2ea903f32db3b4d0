package core_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// The commands of scenarios, by topic.

func (s *scenario) DoMount(c call) errcode.Code {
	info := mastertest.Segment(c.client, c.args[0], parseBytes(c.t, c.args[1]))
	if len(c.args) > 2 {
		info.Endpoint = c.args[2]
	}
	if len(c.args) > 3 {
		info.HostID = c.args[3]
	}
	s.MountInfo(c.client, info)
	return errcode.OK
}

func (s *scenario) DoMountOnly(c call) errcode.Code {
	return s.MountSegment(mastertest.Segment(c.client, c.args[0], parseBytes(c.t, c.args[1])), mastertest.ID(c.client))
}

func (s *scenario) DoRemount(c call) errcode.Code {
	var infos []segment.Info
	for i := 0; i+1 < len(c.args); i += 2 {
		owner, name := c.owner(i)
		infos = append(infos, mastertest.Segment(owner, name, parseBytes(c.t, c.args[i+1])))
	}
	return s.ReMountSegment(infos, mastertest.ID(c.client))
}

// owner reads which client's segment is meant: the caller's "name", or client 3's "3:name".
func (c *call) owner(i int) (uint64, string) {
	owner, name, found := strings.Cut(c.args[i], ":")
	if !found {
		return c.client, owner
	}
	return parseBytes(c.t, owner), name
}

func (c *call) segment(i int) segment.UUID {
	return mastertest.Segment(func() (uint64, string, uint64) { o, n := c.owner(i); return o, n, 1 }()).ID
}

func (s *scenario) DoUnmount(c call) errcode.Code {
	return s.UnmountSegment(c.segment(0), mastertest.ID(c.client))
}

func (s *scenario) DoGraceful(c call) errcode.Code {
	return s.GracefulUnmountSegment(c.segment(0), mastertest.ID(c.client), uint64(parseDuration(c.t, c.args[1]).Milliseconds()))
}

func (s *scenario) DoStatus(c call) string {
	st, code := s.QuerySegmentStatus(c.args[0])
	byID, codeByID := s.QuerySegmentStatusByID(c.segment(0))
	if code != errcode.OK || codeByID != errcode.OK {
		return fmt.Sprintf("%d %d", code, codeByID)
	}
	return fmt.Sprintf("%v %v", st, byID)
}

func (s *scenario) DoSegment(c call) string {
	used, capacity, code := s.QuerySegment(c.args[0])
	if code != errcode.OK {
		return strconv.Itoa(int(code))
	}
	return bytesText(used) + " of " + bytesText(capacity)
}

func (s *scenario) DoPing(c call) int      { return int(s.Ping(mastertest.ID(c.client))) }
func (s *scenario) DoSilence(c call)       { s.Silence(c.client) }
func (s *scenario) DoRevive(c call)        { s.Revive(c.client) }
func (s *scenario) DoAdvance(c call)       { s.Advance(parseDuration(c.t, c.args[0])) }
func (s *scenario) DoClock(c call)         { s.Clock.Set(parseDuration(c.t, c.args[0])) } // nothing happens meanwhile
func (s *scenario) DoStep(call)            { s.Step() }
func (s *scenario) DoCapacity(call) uint64 { return s.Stats().CapacityBytes }

func (s *scenario) DoClients(call) string {
	st := s.Stats().Clients
	return fmt.Sprintf("active %d suspected %d remounted %d", st.Active, st.Suspected, st.Remounted)
}

func (s *scenario) DoAddresses(c call) []string {
	var ids []segment.UUID
	for _, a := range c.args {
		ids = append(ids, mastertest.ID(parseBytes(c.t, a)))
	}
	var words []string
	for _, e := range s.BatchQueryIP(ids) {
		words = append(words, fmt.Sprintf("%d:%s", e.Key.First, strings.Join(e.Value, ",")))
	}
	return words
}

func (s *scenario) DoPolicy(c call) {
	var pairs []any
	for _, a := range c.args {
		name, quota, _ := strings.Cut(a, "=")
		pairs = append(pairs, name, int(parseBytes(c.t, quota)))
	}
	s.Policies(pairs...)
}

func (s *scenario) DoCharged(c call) uint64 { return s.Charged(c.args[0]) }

func (s *scenario) DoEffective(c call) uint64 {
	snap, _ := s.TenantSnapshot(c.args[0])
	return snap.EffectiveQuotaBytes
}

func (s *scenario) DoSnapshot(c call) string {
	snap, ok := s.TenantSnapshot(c.args[0])
	if !ok {
		return "none"
	}
	text := fmt.Sprintf("%s of %s", bytesText(snap.ChargedBytes), bytesText(snap.EffectiveQuotaBytes))
	for word, on := range map[string]bool{" closed": snap.AdmissionClosed, " over": snap.OverQuota, " policy": snap.HasExplicitPolicy} {
		if on {
			text += word
		}
	}
	words := strings.Fields(text)
	slices.Sort(words[3:])
	return strings.Join(words, " ")
}

func (s *scenario) DoTenants(call) []string {
	var names []string
	for _, snap := range s.TenantSnapshots() {
		names = append(names, snap.TenantID)
	}
	return names
}

func (s *scenario) DoBeginRemoval(c call) errcode.Code { return s.BeginRemoval(c.args[0]) }
func (s *scenario) DoCancelRemoval(c call)             { s.CancelRemoval(c.args[0]) }

// Writes. MustPut's microsecond is spent after each End, so that no two objects are equally old.

func (s *scenario) DoPutStart(c call) errcode.Code {
	tenantName, key := c.key(0)
	_, code := s.PutStart(mastertest.ID(c.client), tenantName, key, parseBytes(c.t, c.args[1]), c.config(2, 1), nil)
	return code
}

func (s *scenario) DoUpsertStart(c call) errcode.Code {
	tenantName, key := c.key(0)
	_, code := s.UpsertStart(mastertest.ID(c.client), tenantName, key, parseBytes(c.t, c.args[1]), c.config(2, 1), nil)
	return code
}

func (s *scenario) DoPutEnd(c call) errcode.Code {
	tenantName, key := c.key(0)
	meta := object.Meta{Key: key}
	if sum, found := c.option("sum"); found {
		n := parseBytes(c.t, sum)
		meta.Checksum = &n
	}
	defer s.Clock.Set(time.Microsecond)
	return s.PutEnd(mastertest.ID(c.client), tenantName, &meta, c.kind(1))
}

func (s *scenario) DoPutRevoke(c call) errcode.Code {
	tenantName, key := c.key(0)
	return s.PutRevoke(mastertest.ID(c.client), tenantName, key, c.kind(1))
}

// DoPut puts one key, or several written as k1..k9, and stops at the first refusal.
func (s *scenario) DoPut(c call) errcode.Code { return s.puts(c, s.DoPutStart) }

// DoUpsert is DoPut with UpsertStart.
func (s *scenario) DoUpsert(c call) errcode.Code { return s.puts(c, s.DoUpsertStart) }

func (s *scenario) puts(c call, start func(call) errcode.Code) errcode.Code {
	for _, key := range expand(c.args[0]) {
		one := c
		one.args = slices.Clone(c.args)
		one.args[0] = key
		if code := start(one); code != errcode.OK {
			return code
		}
		one.args = one.args[:1]
		if code := s.DoPutEnd(one); code != errcode.OK {
			return code
		}
	}
	return errcode.OK
}

// expand turns "a/k3..k5" into a/k3, a/k4, a/k5.
func expand(text string) []string {
	from, to, found := strings.Cut(text, "..")
	stem := strings.TrimRight(from, "0123456789")
	if !found || stem == from {
		return []string{text}
	}
	first, _ := strconv.Atoi(from[len(stem):])
	last, _ := strconv.Atoi(strings.TrimLeft(to, "abcdefghijklmnopqrstuvwxyz"))
	var all []string
	for i := first; i <= last; i++ {
		all = append(all, stem+strconv.Itoa(i))
	}
	return all
}

func codesOf[T any](results []errcode.Result[T]) []errcode.Code {
	codes := []errcode.Code{}
	for _, r := range results {
		codes = append(codes, r.Code)
	}
	return codes
}

// sizes reads 1M,2M,...
func (c *call) sizes(i int) (sizes []uint64) {
	for _, text := range strings.Split(c.args[i], ",") {
		sizes = append(sizes, parseBytes(c.t, text))
	}
	return sizes
}

func (s *scenario) DoBatchStart(c call) []errcode.Code {
	tenantName, keys := c.keys(0)
	return codesOf(s.BatchPutStart(mastertest.ID(c.client), tenantName, keys, c.sizes(1), c.config(2, len(keys)), nil))
}

func (s *scenario) DoBatchUpsertStart(c call) []errcode.Code {
	tenantName, keys := c.keys(0)
	return codesOf(s.BatchUpsertStart(mastertest.ID(c.client), tenantName, keys, c.sizes(1), c.config(2, len(keys)), nil))
}

func (s *scenario) DoBatchEnd(c call) []errcode.Code {
	tenantName, keys := c.keys(0)
	var metas []object.Meta
	for _, key := range keys {
		metas = append(metas, object.Meta{Key: key})
	}
	defer s.Clock.Set(time.Microsecond)
	return codesOf(s.BatchPutEnd(mastertest.ID(c.client), tenantName, metas, object.ReplicaAll, nil))
}

func (s *scenario) DoBatchRevoke(c call) []errcode.Code {
	tenantName, keys := c.keys(0)
	return codesOf(s.BatchPutRevoke(mastertest.ID(c.client), tenantName, keys, object.ReplicaAll, nil))
}

// Reads.

func (s *scenario) DoGet(c call) errcode.Code {
	tenantName, key := c.key(0)
	return s.Get(tenantName, key)
}

// DoChecksum answers what the writer said the checksum is.
func (s *scenario) DoChecksum(c call) string {
	tenantName, key := c.key(0)
	var list object.ReplicaList
	switch code := s.AdminReplicas(tenantName, key, &list); {
	case code != errcode.OK:
		return strconv.Itoa(int(code))
	case list.Checksum == nil:
		return "none"
	}
	return strconv.FormatUint(*list.Checksum, 10)
}

// DoWhere answers the segments of the readable replicas, or the code, without a lease.
func (s *scenario) DoWhere(c call) []string {
	tenantName, key := c.key(0)
	var list object.ReplicaList
	if code := s.AdminReplicas(tenantName, key, &list); code != errcode.OK {
		return []string{strconv.Itoa(int(code))}
	}
	names := []string{}
	for _, r := range list.Replicas {
		names = append(names, r.Location.Memory.Buffer.Endpoint)
	}
	slices.Sort(names)
	return names
}

func (s *scenario) DoBatchGet(c call) []errcode.Code {
	tenantName, keys := c.keys(0)
	return codesOf(s.BatchGetReplicaList(tenantName, keys, nil))
}

func boolOr(ok bool, code errcode.Code) string {
	if code != errcode.OK {
		return strconv.Itoa(int(code))
	}
	return strconv.FormatBool(ok)
}

func (s *scenario) DoExist(c call) string { return boolOr(s.ExistKey(c.key(0))) }
func (s *scenario) DoProbe(c call) string { return boolOr(s.ProbeKey(c.key(0))) }

func (s *scenario) DoBatchExist(c call) []string {
	tenantName, keys := c.keys(0)
	return bools(s.BatchExistKey(tenantName, keys, nil))
}

// DoBatchProbe takes mode, candidate size and keys.
func (s *scenario) DoBatchProbe(c call) []string {
	tenantName, keys := c.keys(2)
	return bools(s.BatchProbeKey(core.LeaseMode(parseBytes(c.t, c.args[0])), parseBytes(c.t, c.args[1]), tenantName, keys, nil))
}

func bools(results []errcode.Result[bool]) []string {
	words := []string{}
	for _, r := range results {
		words = append(words, boolOr(r.Value, r.Code))
	}
	return words
}

// DoKeys answers the readable keys of a tenant.
func (s *scenario) DoKeys(c call) []string {
	keys := s.AllKeys(c.args[0])
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return keys
}

func (s *scenario) DoRegex(c call) string {
	found, code := s.GetReplicaListByRegex(c.args[0], c.args[1])
	if code != errcode.OK {
		return strconv.Itoa(int(code))
	}
	keys := []string{}
	for _, f := range found {
		keys = append(keys, f.Key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// Removal and pins.

func (s *scenario) DoRemove(c call) errcode.Code {
	tenantName, key := c.key(0)
	return s.Remove(tenantName, key, c.force)
}

func (s *scenario) DoBatchRemove(c call) []errcode.Code {
	tenantName, keys := c.keys(0)
	return codesOf(s.BatchRemove(tenantName, keys, c.force, nil))
}

// DoRemoveAll takes a tenant, or "" written as -.
func (s *scenario) DoRemoveAll(c call) int64 {
	return s.RemoveAll(strings.TrimPrefix(c.args[0], "-"), c.force)
}

func (s *scenario) DoRemoveRegex(c call) string {
	n, code := s.RemoveByRegex(c.args[0], c.args[1], c.force)
	if code != errcode.OK {
		return strconv.Itoa(int(code))
	}
	return strconv.FormatInt(n, 10)
}

// DoClear takes tenant/keys and a segment name, or - for the whole object.
func (s *scenario) DoClear(c call) []string {
	tenantName, keys := c.keys(0)
	cleared, code := s.BatchReplicaClear(tenantName, keys, mastertest.ID(c.client), strings.TrimPrefix(c.args[1], "-"))
	if code != errcode.OK {
		return []string{strconv.Itoa(int(code))}
	}
	return cleared
}

func (s *scenario) DoPin(c call) []errcode.Code {
	tenantName, keys := c.keys(0)
	if len(c.args) == 1 {
		return s.SetSoftPins(tenantName, keys, nil)
	}
	ms := uint64(parseDuration(c.t, c.args[1]).Milliseconds())
	return s.SetSoftPins(tenantName, keys, &ms)
}

func (s *scenario) DoUnpin(c call) []errcode.Code {
	tenantName, keys := c.keys(0)
	return s.ClearSoftPins(tenantName, keys)
}

// DoStat answers a field of core.Stats.
func (s *scenario) DoStat(c call) string {
	v := reflect.ValueOf(s.Stats()).FieldByName(c.args[0])
	if !v.IsValid() {
		c.t.Fatalf("no statistic %q", c.args[0])
	}
	return fmt.Sprint(v.Interface())
}

func (s *scenario) DoAllocated(call) uint64 { return s.Stats().AllocatedBytes }

// DoTenantStat answers what was rejected and evicted of a tenant.
func (s *scenario) DoTenantStat(c call) string {
	for _, st := range s.Stats().Tenants {
		if st.Tenant == c.args[0] {
			return fmt.Sprintf("rejected %d evicted %s", st.Rejected, bytesText(st.EvictedBytes))
		}
	}
	return "rejected 0 evicted 0"
}

// DoLedger answers what an object holds of its tenant's charge.
func (s *scenario) DoLedger(c call) string {
	tenantName, key := c.key(0)
	ledger, works, ok := s.LedgerOf(tenantName, key)
	if !ok {
		return "none"
	}
	return fmt.Sprintf("pending %s committed %s replaced %s works %s",
		bytesText(ledger.Pending()), bytesText(ledger.Committed()), bytesText(ledger.Replaced()), bytesText(works))
}

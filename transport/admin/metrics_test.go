package admin

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md and testdata/http/metrics.txt")

// busy has something in every family.
func busy() *fake {
	f := loaded()
	f.stats = core.Stats{
		AllocatedBytes: 2697152, CapacityBytes: 570425344, Keys: 7, SoftPinnedKeys: 2, ActiveClients: 3, MemCacheNums: 6, InFlightWrites: 1,
		MemCacheHits: 31, MemCacheHitBytes: 918140, ValidGets: 31, TotalGets: 37, SuccessfulEvictions: 4, AttemptedEvictions: 5, EvictedKeys: 8, EvictedBytes: 4096,
		PutStartDiscards: 6, PutStartReleases: 2, PutStartAllocFailures: 9, PutStartPartialAllocations: 10, PutStartAlreadyExists: 11, BatchPutStartAlreadyExists: 13, DiscardedStagingBytes: 14000, LedgerErrors: 1,
		Segments:   []core.SegmentStat{{Name: "10.0.0.6:1", Allocated: 2097152, Capacity: 536870912}, {Name: "odd\\\"\n\xff", Allocated: 1, Capacity: 2}},
		ValueSizes: core.Histogram{Bounds: []float64{4096, 65536, 67108864}, Counts: []uint64{30, 36, 39}, Sum: 14918726, Count: 40},
		Tenants: []core.TenantStat{
			{Tenant: "ta", Rejected: 4, EvictedBytes: 4096, Keys: 12, InFlightWrites: 1, Lookups: 9, Hits: 7, HitBytes: 70},
			{Tenant: "tb", Rejected: 5},
			{Tenant: "tc", EvictedBytes: 1},
		},
		Tier: core.TierStats{
			FileBytes: 6000, CapacityBytes: 1 << 30, Offloads: []core.OffloadStat{{Client: "1-1", Enqueued: 3, Completed: 2}},
			Promotions: core.PromotionStat{InFlight: 2, Admitted: 9, Completed: 4, CompletedBytes: 4096, Expired: 1, Failed: 3, Canceled: 5, Rare: 6, MemoryFull: 7, TooMany: 8, Recorded: 11, Dropped: 12},
		},
		NoF:     core.NoFStats{AllocatedBytes: 10, CapacityBytes: 20, Segments: []core.SegmentStat{{Name: "n1", Allocated: 10, Capacity: 20}}, ProbeSuccesses: 3, AttemptedEvictions: 2, EvictedKeys: 1},
		Weights: core.WeightStats{ByAvailability: [5]int{1: 2}, ByResidency: [5]int{2: 1, 4: 6}, ActiveLeases: 3, OldestJobAgeMs: 50},
		Clients: core.ClientStat{Active: 3, Suspected: 1, Remounted: 3, SuspectedTotal: 5, RecoveredTotal: 2, OfflineTotal: 3, HeldExpiries: 1, MasterStalls: 2},
	}
	f.calls = map[string]rpc.Counters{
		"PutStart": {Requests: 20, Failures: 3}, "UpsertStart": {Requests: 11, Failures: 8}, "Remove": {Requests: 5, Failures: 1},
		"BatchRemove": {Requests: 2, Items: 7, FailedItems: 4}, "Ping": {Requests: 11},
		"GracefulUnmountSegment": {Requests: 3, Failures: 1}, "UnmountSegment": {Requests: 2}, "DynamicReplicaCopyStart": {Requests: 2, Failures: 2},
		"EvictDiskReplica": {Requests: 3, Failures: 1}, "EvictDiskReplicaIfCurrent": {Requests: 4}, "BatchEvictDiskReplica": {Requests: 5, Failures: 1, PartialSuccesses: 2, Empty: 1, Items: 9, FailedItems: 6},
		"BatchExistKey": {Requests: 2, Empty: 1, Items: 3}, "MountNoFSegment": {Requests: 2, Failures: 2},
		"BatchPutStart": {Requests: 9, Failures: 1, PartialSuccesses: 2, Items: 20, FailedItems: 5}, "BatchUpsertStart": {Requests: 1, Items: 2},
	}
	f.listener = rpc.Stats{Accepted: 9, Open: 4, Panics: 0, BytesRead: 1000, BytesWritten: 2000, Refused: map[string]uint64{"bad_body": 2, "too_large": 0}}
	f.connector = &ConnectorStatus{
		Type: "file", State: ConnectorReady, Restarts: 2, ReloadSuccesses: 4, ReloadFailures: map[string]uint64{"invalid": 5},
		LastSuccess: start.Add(250 * time.Millisecond), OverwrittenSaves: 6,
		ReloadOK: true, ContentHash: "abcdef123456ffff", Tenants: 3, HeldRevision: "r8", StoredTime: start,
	}
	return f
}

func metricsText(t *testing.T, f *fake) string {
	t.Helper()
	s, _ := newTestServer(t, f)
	got := ask(t, s.Handler(), "GET /metrics", "")
	if got.status != 200 || got.kind != typeScrape {
		t.Fatalf("%d %s: %s", got.status, got.kind, got.body)
	}
	return got.body
}

var typeLine = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)

// families returns name to type.
func familiesOf(text string) map[string]string {
	out := map[string]string{}
	for _, m := range typeLine.FindAllStringSubmatch(text, -1) {
		out[m[1]] = m[2]
	}
	return out
}

func lines(t *testing.T, name string) []string {
	t.Helper()
	content, err := os.ReadFile("../../testdata/http/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n") {
		if line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

// Every family of a release is printed by a master that behaves as that one, with its type, or listed with the
// reason why not, and none that only a later one has; ours beside them are exactly those of the list.
func TestFamilies(t *testing.T) {
	notYet := map[string]string{}
	for _, line := range lines(t, "metrics_absent.txt") {
		name, reason, ok := strings.Cut(line, "\t")
		if !ok || reason == "" {
			t.Errorf("metrics_absent.txt: no reason in %q", line)
		}
		notYet[name] = reason
	}
	known := map[string]bool{}
	for _, name := range []string{"metrics_0.3.13.txt", "metrics_0.3.14.txt"} {
		for _, line := range lines(t, name) {
			family, _, _ := strings.Cut(line, " ")
			known[family] = true
		}
	}
	for release, golden := range map[wire.Release]string{wire.R0313: "metrics_0.3.13.txt", wire.R0314: "metrics_0.3.14.txt"} {
		f := busy()
		f.release = release
		have := familiesOf(metricsText(t, f))
		theirs := map[string]bool{}
		for _, line := range lines(t, golden) {
			name, kind, _ := strings.Cut(line, " ")
			theirs[name] = true
			switch {
			case have[name] == kind && notYet[name] == "":
			case have[name] == "" && notYet[name] != "":
			case have[name] != "" && notYet[name] != "":
				t.Errorf("%s: %s is printed and listed as absent", golden, name)
			default:
				t.Errorf("%s: %s is %q, want %q", golden, name, have[name], kind)
			}
		}
		for _, family := range allFamilies() {
			if name := family.name; release == wire.R0313 && have[name] != "" && known[name] && !theirs[name] {
				t.Errorf("%s: %s is printed, which that release does not have", golden, name)
			}
		}
	}
	for name := range notYet {
		if !known[name] {
			t.Errorf("metrics_absent.txt: no release has %s", name)
		}
	}
	var got []string
	for name, kind := range familiesOf(metricsText(t, busy())) {
		got = append(got, name+" "+kind)
	}
	sort.Strings(got)
	text := strings.Join(got, "\n")
	if *update {
		if err := os.WriteFile("../../testdata/http/metrics.txt", []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if w := strings.Join(lines(t, "metrics.txt"), "\n"); text != w {
		t.Errorf("families are not those of metrics.txt:\n%s", difference(text, w))
	}
}

// The page is what Prometheus' own parser reads: each family once, nothing twice in it.
func TestExposition(t *testing.T) {
	seen := map[string]bool{}
	family := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(metricsText(t, busy()), "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "# HELP "):
			family = strings.Fields(line)[2]
			if seen[family] {
				t.Errorf("%s is there twice", family)
			}
			seen[family] = true
		case strings.HasPrefix(line, "# TYPE "):
			if f := strings.Fields(line); len(f) != 4 || f[2] != family {
				t.Errorf("%q does not follow its help", line)
			}
		default:
			m := sampleLine.FindStringSubmatch(line)
			if m == nil {
				t.Errorf("%q is no sample", line)
				continue
			}
			name := m[1]
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if strings.TrimSuffix(name, suffix) == family {
					name = family
				}
			}
			if name != family {
				t.Errorf("%q stands in %s", line, family)
			}
			if seen[m[1]+m[2]] && m[2] != "" {
				t.Errorf("%q is there twice", line)
			}
			seen[m[1]+m[2]] = true
		}
	}
}

var sampleLine = regexp.MustCompile(`^([a-z_0-9]+)(\{(?:[a-z_]+="(?:[^"\\]|\\["\\n])*",?)+\})? (\+Inf|[-+0-9.e]+)$`)

func difference(got, want string) string {
	var b strings.Builder
	have := map[string]bool{}
	for _, line := range strings.Split(want, "\n") {
		have[line] = true
	}
	for _, line := range strings.Split(got, "\n") {
		if !have[line] {
			fmt.Fprintf(&b, "+%s\n", line)
		}
		delete(have, line)
	}
	for line := range have {
		fmt.Fprintf(&b, "-%s\n", line)
	}
	return b.String()
}

// At start plain families are there and 0, those with labels and the histogram are not.
func TestMetricsAtStart(t *testing.T) {
	text := metricsText(t, &fake{service: Serving()})
	have := familiesOf(text)
	for _, name := range []string{
		"master_value_size_bytes", "segment_allocated_bytes", "mooncake_tenant_quota_reject_total", "mooncake_tenant_evict_bytes_total",
		"mooncake_tenant_quota_requested_bytes", "mooncake_tenant_quota_allocatable_capacity_bytes", "mooncake_tenant_quota_connector_state",
	} {
		if have[name] != "" {
			t.Errorf("%s is printed by an idle master without tenants", name)
		}
	}
	for _, f := range allFamilies() {
		switch {
		case f.absent != "":
			if have[f.name] != "" && !strings.HasPrefix(f.name, "go_") {
				t.Errorf("%s is printed by an idle master", f.name)
			}
		case have[f.name] == "" && f.name != "mooncake_rpc_refused_frames_total":
			t.Errorf("%s is not printed", f.name)
		case f.value != nil && !strings.HasPrefix(f.name, "mooncake_process_") && !strings.HasPrefix(f.name, "go_") && !strings.Contains(text, "\n"+f.name+" 0\n"):
			t.Errorf("%s is not printed as 0", f.name)
		}
	}
	if !regexp.MustCompile(`(?m)^mooncake_process_rss_bytes [1-9]`).MatchString(text) {
		t.Error("resident memory is not printed")
	}
}

func TestSamples(t *testing.T) {
	text := "\n" + metricsText(t, busy())
	for _, want := range []string{
		"master_allocated_bytes 2697152", "master_total_capacity_bytes 570425344", "master_key_count 7", "master_active_clients 3",
		"master_client_liveness_suspected_clients 1", "master_client_liveness_offline_transitions_total 3",
		`segment_allocated_bytes{segment="10.0.0.6:1"} 2097152`, `segment_total_capacity_bytes{segment="odd\\\"\n` + "\uFFFD" + `"} 2`,
		`master_value_size_bytes_bucket{le="4096.000000"} 30`, `master_value_size_bytes_bucket{le="67108864.000000"} 39`,
		`master_value_size_bytes_bucket{le="+Inf"} 40`, "master_value_size_bytes_sum 14918726", "master_value_size_bytes_count 40",
		"master_put_start_requests_total 31", "master_put_start_failures_total 11", "master_put_start_object_already_exists_total 11",
		"master_remove_requests_total 12", "master_remove_failures_total 5", "master_ping_requests_total 11",
		"master_batch_put_start_requests_total 10", "master_batch_put_start_failures_total 1", "master_batch_put_start_partial_successes_total 2",
		"master_batch_put_start_items_total 22", "master_batch_put_start_failed_items_total 5",
		"master_unmount_segment_requests_total 5", "master_unmount_segment_failures_total 1", "master_copy_start_requests_total 2",
		"master_evict_disk_replica_requests_total 12", "master_evict_disk_replica_failures_total 4",
		"master_batch_exist_key_failures_total 1", "master_batch_exist_key_items_total 3", "master_mount_nof_segment_failures_total 2",
		"master_allocated_file_size_bytes 6000", "master_total_file_capacity_bytes 1073741824", "master_promotion_rejected_watermark_total 7",
		`master_offload_enqueued_total{client_id="1-1"} 3`, `nof_segment_total_capacity_bytes{segment="n1"} 20`, "master_nof_heartbeat_success_total 3",
		"master_attempted_evictions_total 7", "master_attempted_evictions_mem 5", "master_attempted_evictions_nof 2", "master_evicted_key_count 9",
		`master_weight_revisions{availability="ready"} 2`, `master_weight_revision_residency{residency="cold"} 1`, `master_weight_revision_residency{residency="absent"} 6`, "master_weight_active_leases 3", "master_weight_oldest_operation_age_ms 50",
		"master_put_start_discarded_staging_size 14000", "total_get_nums_ 37", "mem_cache_hit_bytes_total 918140",
		`mooncake_tenant_quota_reject_total{tenant_id="ta",reason="quota_exceeded"} 4`, `mooncake_tenant_evict_bytes_total{tenant_id="tc"} 1`,
		`mooncake_tenant_quota_requested_bytes{tenant_id="ta"} 10485760`, `mooncake_tenant_quota_over_quota{tenant_id="tenant b"} 1`,
		`mooncake_tenant_quota_admission_closed{tenant_id="ta"} 0`, `mooncake_tenant_quota_explicit_policy{tenant_id="ta"} 1`,
		"master_batch_put_start_object_already_exists_total 13",
		`mooncake_tenant_keys{tenant_id="ta"} 12`, `mooncake_tenant_lookups_total{tenant_id="ta"} 9`, `mooncake_tenant_hit_bytes_total{tenant_id="ta"} 70`,
		"mooncake_tenant_quota_allocatable_capacity_bytes 1000", "mooncake_tenant_quota_oversubscription_ratio 1.5",
		`mooncake_tenant_quota_connector_state{type="file",state="ready"} 1`, `mooncake_tenant_quota_connector_state{type="file",state="degraded"} 0`,
		"mooncake_tenant_quota_connector_restarts_total 2", "mooncake_tenant_quota_connector_reload_successes_total 4",
		`mooncake_tenant_quota_connector_reload_failures_total{reason="invalid"} 5`,
		`mooncake_tenant_quota_policy_last_reload_successful{type="file"} 1`, `mooncake_tenant_quota_policy_content_hash{type="file"} 188900967593046`,
		`mooncake_tenant_quota_policy_in_force_timestamp_seconds{type="file"} 0`, `mooncake_tenant_quota_policy_tenants{type="file"} 3`,
		`mooncake_tenant_quota_policy_held{type="file"} 1`, `mooncake_tenant_quota_policy_stale{type="file"} 0`,
		`mooncake_tenant_quota_policy_stored_timestamp_seconds{type="file"} 1786270272`,
		"mooncake_tenant_quota_connector_last_success_timestamp_seconds 1.78627027225e+09", "mooncake_tenant_quota_connector_overwritten_saves_total 6",
		`mooncake_rpc_refused_frames_total{reason="bad_body"} 2`, `mooncake_rpc_refused_frames_total{reason="too_large"} 0`, "mooncake_rpc_connections 4",
		`mooncake_build_info{version="2.0.0",display_version="1.2.3 (git: abc)"} 1`, "ha_standby_state 0",
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			name, _, _ := strings.Cut(want, "{")
			name, _, _ = strings.Cut(name, " ")
			t.Errorf("no line %s; there is\n%s", want, strings.Join(regexp.MustCompile(`(?m)^`+name+`[{ ].*$`).FindAllString(text, -1), "\n"))
		}
	}
	if strings.Contains(text, "master_remount_nof_segment") {
		t.Error("a family that is printed once used is printed before")
	}
	if strings.Contains(text, `mooncake_tenant_evict_bytes_total{tenant_id="tb"}`) {
		t.Error("a tenant without evictions is printed")
	}
}

func TestOversubscription(t *testing.T) {
	for _, test := range []struct {
		totals tenant.Totals
		want   string
	}{{tenant.Totals{}, "0"}, {tenant.Totals{RequestedBytes: 5}, "+Inf"}, {tenant.Totals{RequestedBytes: 1, CapacityBytes: 4}, "0.25"}} {
		f := loaded()
		f.totals = test.totals
		if text := metricsText(t, f); !strings.Contains(text, "\nmooncake_tenant_quota_oversubscription_ratio "+test.want+"\n") {
			t.Errorf("%+v: not %s", test.totals, test.want)
		}
	}
}

func TestProcessMemory(t *testing.T) {
	got := parseProcessMemory([]byte("Name:\tx\nVmSize:\t  100 kB\nVmHWM:\t 9 kB\nVmRSS:\t 8 kB\nRssAnon:\t3 kB\nRssFile:\t4 kB\nRssShmem:\t1 kB\nVmSwap:\tbad kB\n"))
	if want := (processMemory{rss: 8192, peak: 9216, anon: 3072, file: 4096, shmem: 1024, vsize: 102400}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

const idleMaster = "Mem Storage: 0 B / 0 B | NVMe-oF SSD: 0 B / 0 B | SSD Storage: 0 B / 0 B | Keys: 0 (soft-pinned: 0) | Clients: 0 | Requests (Success/Total per sec): PutStart=0.00/0.00, PutEnd=0.00/0.00, PutRevoke=0.00/0.00, Get=0.00/0.00, Exist=0.00/0.00, Del=0.00/0.00, DelAll=0.00/0.00, Ping=0.00/0.00, CopyStart=0.00/0.00, CopyEnd=0.00/0.00, CopyRevoke=0.00/0.00, MoveStart=0.00/0.00, MoveEnd=0.00/0.00, MoveRevoke=0.00/0.00, EvictDiskReplica=0.00/0.00 | Batch Requests (per sec, Req=Success/PartialSuccess/Total, Item=Success/Total): PutStart:(Req=0.00/0.00/0.00, Item=0.00/0.00), PutEnd:(Req=0.00/0.00/0.00, Item=0.00/0.00), PutRevoke:(Req=0.00/0.00/0.00, Item=0.00/0.00), Get:(Req=0.00/0.00/0.00, Item=0.00/0.00), ExistKey:(Req=0.00/0.00/0.00, Item=0.00/0.00), QueryIp:(Req=0.00/0.00/0.00, Item=0.00/0.00), Clear:(Req=0.00/0.00/0.00, Item=0.00/0.00), CreateMoveTask:(Req=0.00/0.00), CreateCopyTask:(Req=0.00/0.00), QueryTask:(Req=0.00/0.00), FetchTasks:(Req=0.00/0.00), MarkTaskToComplete:(Req=0.00/0.00) | Eviction: Success/Attempts=0/0, AllocFail=0, PartialAlloc=0, keys=0, size=0 B | Mem Eviction: Success/Attempts=0/0, keys=0, size=0 B | NoF Eviction: Success/Attempts=0/0, keys=0, size=0 B | Discard: Released/Total=0/0, StagingSize=0 B | Promotion: in_flight=0, admitted=0, completed=0, failed=0, cancelled=0, expired=0, bytes=0 B, rejected(freq/wm/cap)=0/0/0"

const idleHA = "HA Metrics Summary: last_seq=0, applied_seq=0, lag=0, pending=0, mutation_queue=0, batch_commits=0, sync_commits=0, skipped=0, checksum_fail=0, etcd_fail=0, watch_disconn=0, state=0, writer_accepting=false, writer_retry_count=0, writer_retry_delay_ms=0, writer_waiting_slots=0, writer_committed_queue=0, writer_callback_queue=0, writer_durable_batch=0, writer_durable_seq=0, writer_last_error=0"

// The line of an idle master is that of release 0.3.14.
func TestSummaryAtStart(t *testing.T) {
	s, _ := newTestServer(t, &fake{service: Serving()})
	check(t, "summary", ask(t, s.Handler(), "GET /metrics/summary", ""),
		reply{200, typeScrape, "role=leader, state=serving, service_ready=true, master={" + idleMaster + "}, ha={" + idleHA + "}"})
}

// That of 0.3.13 tells of snapshots and nothing of the writer of the operation log.
func TestSummary0313(t *testing.T) {
	s, _ := newTestServer(t, &fake{service: Serving(), release: wire.R0313})
	ha, _, _ := strings.Cut(idleHA, ", writer_accepting")
	check(t, "summary", ask(t, s.Handler(), "GET /metrics/summary", ""),
		reply{200, typeScrape, "role=leader, state=serving, service_ready=true, master={" + idleMaster + " | Snapshots: Success=0, Fail=0}, ha={" + ha + "}"})
}

// Rates count from the last log line; reading the page does not move that.
func TestSummaryRates(t *testing.T) {
	f := busy()
	s, c := newTestServer(t, f)
	page := func() string { return ask(t, s.Handler(), "GET /metrics/summary", "").body }
	want := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in %s", part, text)
			}
		}
	}
	want(page(), "PutStart=0.00/0.00") // no time has passed
	c.advance(10 * time.Second)
	want(page(), "Mem Storage: 2.57 MB / 544.00 MB (0.5%)", "Keys: 7 (soft-pinned: 2)", "Clients: 3", "PutStart=2.00/3.10", "Del=0.70/1.20",
		"PutStart:(Req=0.70/0.20/1.00, Item=1.70/2.20)", "Eviction: Success/Attempts=4/7, AllocFail=9, PartialAlloc=10, keys=9, size=4.00 KB", "Mem Eviction: Success/Attempts=4/5, keys=8",
		"NoF Eviction: Success/Attempts=0/2, keys=1, size=0 B", "NVMe-oF SSD: 10 B / 20 B (50.0%)", "SSD Storage: 5.86 KB / 1.00 GB (0.0%)",
		"Promotion: in_flight=2, admitted=9, completed=4, failed=3, cancelled=5, expired=1, bytes=4.00 KB, rejected(freq/wm/cap)=6/7/8",
		"Discard: Released/Total=2/6, StagingSize=13.67 KB")
	want(page(), "PutStart=2.00/3.10")
	line := s.reporter.LogLine(c.Now())
	if !strings.HasPrefix(line, "Master Admin Metrics: role=leader, state=serving, service_ready=true, master={Mem Storage: 2.57 MB") {
		t.Errorf("log line %s", line)
	}
	want(line, "PutStart=2.00/3.10")
	f.calls = map[string]rpc.Counters{"PutStart": {Requests: 25, Failures: 3}, "UpsertStart": {Requests: 11, Failures: 8}}
	c.advance(5 * time.Second)
	want(page(), "PutStart=1.00/1.00")
	s.reporter.LogLine(c.Now())
	c.advance(time.Second)
	want(page(), "PutStart=0.00/0.00")
}

func TestMetricsPage(t *testing.T) {
	const page = "../../docs/metrics.md"
	if *update {
		if err := os.WriteFile(page, []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != Markdown() {
		t.Error("docs/metrics.md does not say what the table says; run with -update")
	}
	n := 0
	for _, s := range sections() {
		n += len(s.families)
	}
	if n != len(allFamilies()) {
		t.Errorf("%d families are in sections, %d are printed", n, len(allFamilies()))
	}
	for _, f := range allFamilies() {
		if f.help == "" || f.labels != nil && f.each == nil {
			t.Errorf("%s: help %q, labels %q", f.name, f.help, f.labels)
		}
	}
}

package admin

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// Reporter makes the summary line of the log and of /metrics/summary. The rates in it are per
// second since the last log line, so the two show the same.
type Reporter struct {
	state State

	mu    sync.Mutex // guards the base of the rates
	base  map[string]rpc.Counters
	since time.Time
}

// NewReporter returns a reporter whose rates count from now.
func NewReporter(state State, now time.Time) *Reporter {
	return &Reporter{state: state, base: map[string]rpc.Counters{}, since: now}
}

// LogLine returns the text of the periodic log line and moves the base of the rates to now.
func (p *Reporter) LogLine(now time.Time) string {
	calls := p.state.Calls()
	line := p.line(now, calls)
	p.mu.Lock()
	p.base, p.since = calls, now
	p.mu.Unlock()
	return "Master Admin Metrics: " + line
}

// Summary returns the text of /metrics/summary and leaves the base alone.
func (p *Reporter) Summary(now time.Time) string {
	st := p.state.Service()
	line := p.line(now, p.state.Calls())
	if st.LeaderAddress != "" {
		line += fmt.Sprintf(", leader=%s, view_version=%d", st.LeaderAddress, st.ViewVersion)
	}
	return line
}

func (p *Reporter) line(now time.Time, calls map[string]rpc.Counters) string {
	st := p.state.Service()
	p.mu.Lock()
	base, seconds := p.base, now.Sub(p.since).Seconds()
	p.mu.Unlock()
	ha := haSummary
	if p.old() {
		ha = haSummary0313
	}
	return fmt.Sprintf("role=%s, state=%s, service_ready=%t, master={%s}, ha={%s}",
		st.Role, st.HAState, st.Ready, p.master(calls, base, seconds), ha)
}

// old reports whether the line is that of release 0.3.13.
func (p *Reporter) old() bool { return p.state.Release == wire.R0313 }

// haSummary is that of a master without an operation log.
const haSummary0313 = "HA Metrics Summary: last_seq=0, applied_seq=0, lag=0, pending=0, mutation_queue=0, batch_commits=0, sync_commits=0, " +
	"skipped=0, checksum_fail=0, etcd_fail=0, watch_disconn=0, state=0"

// haSummary is the same of release 0.3.14.
const haSummary = haSummary0313 + ", writer_accepting=false, writer_retry_count=0, writer_retry_delay_ms=0, " +
	"writer_waiting_slots=0, writer_committed_queue=0, writer_callback_queue=0, writer_durable_batch=0, writer_durable_seq=0, writer_last_error=0"

func (p *Reporter) master(calls, base map[string]rpc.Counters, seconds float64) string {
	r := readStats(&p.state)
	s, up := &r.stats, &r.stats.Tier.Promotions
	rate := rates{calls: calls, base: base, seconds: seconds}
	parts := []string{
		"Mem Storage: " + share(s.AllocatedBytes, s.CapacityBytes),
		"NVMe-oF SSD: " + share(s.NoF.AllocatedBytes, s.NoF.CapacityBytes),
		"SSD Storage: " + share(uint64(max(s.Tier.FileBytes, 0)), uint64(fileCapacity(r))),
		fmt.Sprintf("Keys: %d (soft-pinned: %d)", s.Keys, s.SoftPinnedKeys),
		fmt.Sprintf("Clients: %d", s.ActiveClients),
		"Requests (Success/Total per sec): " + rate.list(singleRates, rate.single),
		"Batch Requests (per sec, Req=Success/PartialSuccess/Total, Item=Success/Total): " + rate.list(batchRates, rate.batch) +
			", " + rate.list(taskRates, rate.task),
		fmt.Sprintf("Eviction: Success/Attempts=%d/%d, AllocFail=%d, PartialAlloc=%d, keys=%d, size=%s", s.SuccessfulEvictions+s.NoF.SuccessfulEvictions,
			s.AttemptedEvictions+s.NoF.AttemptedEvictions, s.PutStartAllocFailures, s.PutStartPartialAllocations, s.EvictedKeys+s.NoF.EvictedKeys, size(s.EvictedBytes+s.NoF.EvictedBytes)),
		fmt.Sprintf("Mem Eviction: Success/Attempts=%d/%d, keys=%d, size=%s", s.SuccessfulEvictions, s.AttemptedEvictions, s.EvictedKeys, size(s.EvictedBytes)),
		fmt.Sprintf("NoF Eviction: Success/Attempts=%d/%d, keys=%d, size=%s", s.NoF.SuccessfulEvictions, s.NoF.AttemptedEvictions, s.NoF.EvictedKeys, size(s.NoF.EvictedBytes)),
		fmt.Sprintf("Discard: Released/Total=%d/%d, StagingSize=%s", s.PutStartReleases, s.PutStartDiscards, size(uint64(max(s.DiscardedStagingBytes, 0)))),
		fmt.Sprintf("Promotion: in_flight=%d, admitted=%d, completed=%d, failed=%d, cancelled=%d, expired=%d, bytes=%s, rejected(freq/wm/cap)=%d/%d/%d", up.InFlight, up.Admitted, up.Completed,
			up.Failed, up.Canceled, up.Expired, size(up.CompletedBytes), up.Rare, up.MemoryFull, up.TooMany),
	}
	if p.old() {
		parts = append(parts, "Snapshots: Success=0, Fail=0")
	}
	return strings.Join(parts, " | ")
}

// rateName is a name in the line and the family of calls behind it.
type rateName struct{ shown, family string }

var (
	singleRates = []rateName{
		{"PutStart", "put_start"},
		{"PutEnd", "put_end"},
		{"PutRevoke", "put_revoke"},
		{"Get", "get_replica_list"},
		{"Exist", "exist_key"},
		{"Del", "remove"},
		{"DelAll", "remove_all"},
		{"Ping", "ping"},
		{"CopyStart", "copy_start"},
		{"CopyEnd", "copy_end"},
		{"CopyRevoke", "copy_revoke"},
		{"MoveStart", "move_start"},
		{"MoveEnd", "move_end"},
		{"MoveRevoke", "move_revoke"},
		{"EvictDiskReplica", "evict_disk_replica"},
	}
	batchRates = []rateName{
		{"PutStart", "batch_put_start"},
		{"PutEnd", "batch_put_end"},
		{"PutRevoke", "batch_put_revoke"},
		{"Get", "batch_get_replica_list"},
		{"ExistKey", "batch_exist_key"},
		{"QueryIp", "batch_query_ip"},
		{"Clear", "batch_replica_clear"},
	}
	taskRates = []rateName{
		{"CreateMoveTask", "create_move_task"},
		{"CreateCopyTask", "create_copy_task"},
		{"QueryTask", "query_task"},
		{"FetchTasks", "fetch_tasks"},
		{"MarkTaskToComplete", "update_task"},
	}
	familyByName = func() map[string]*callFamily {
		m := make(map[string]*callFamily, len(callFamilies))
		for i := range callFamilies {
			m[callFamilies[i].name] = &callFamilies[i]
		}
		return m
	}()
)

// rates turns counters into rates since the base.
type rates struct {
	calls, base map[string]rpc.Counters
	seconds     float64
}

func (r rates) list(names []rateName, one func(rateName) string) string {
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = one(n)
	}
	return strings.Join(parts, ", ")
}

func (r rates) delta(family string) rpc.Counters {
	f := familyByName[family]
	now, then := f.sum(r.calls), f.sum(r.base)
	return rpc.Counters{
		Requests: now.Requests - then.Requests, Failures: now.Failures - then.Failures, PartialSuccesses: now.PartialSuccesses - then.PartialSuccesses,
		Items: now.Items - then.Items, FailedItems: now.FailedItems - then.FailedItems,
	}
}

func (r rates) per(n uint64) float64 {
	if r.seconds <= 0 {
		return 0
	}
	return float64(int64(n)) / r.seconds
}

func (r rates) single(n rateName) string {
	d := r.delta(n.family)
	return fmt.Sprintf("%s=%.2f/%.2f", n.shown, r.per(d.Requests-d.Failures), r.per(d.Requests))
}

func (r rates) batch(n rateName) string {
	d := r.delta(n.family)
	return fmt.Sprintf("%s:(Req=%.2f/%.2f/%.2f, Item=%.2f/%.2f)", n.shown, r.per(d.Requests-d.Failures-d.PartialSuccesses), r.per(d.PartialSuccesses),
		r.per(d.Requests), r.per(d.Items-d.FailedItems), r.per(d.Items))
}

func (r rates) task(n rateName) string {
	d := r.delta(n.family)
	return fmt.Sprintf("%s:(Req=%.2f/%.2f)", n.shown, r.per(d.Requests-d.Failures), r.per(d.Requests))
}

// share prints used and capacity, with the percentage where there is a capacity.
func share(used, capacity uint64) string {
	text := size(used) + " / " + size(capacity)
	if capacity == 0 {
		return text
	}
	return fmt.Sprintf("%s (%.1f%%)", text, float64(used)/float64(capacity)*100)
}

// size prints bytes in the largest unit that leaves at least one: 0 B, 976.62 KB, 32.00 MB.
func size(n uint64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/1024, "KMGTPE"
	i := 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return fmt.Sprintf("%.2f %cB", v, units[i])
}

package core_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// rig is a master and the sketch of its one object, "k". Clients 1 to 3 lend a segment each; a
// fourth copies, and lends what is needed to put the pool or the tenant under pressure.
type rig struct {
	t      *testing.T
	m      *mastertest.Master
	s      *sketch
	strict bool
	tenant string
	trace  []string
}

const (
	rigQuota   = 1_000_000
	rigWriter  = 9 // who writes; it lends nothing
	rigOther   = 8
	rigWorker  = 4 // who copies; it lends the spare segment
	rigSegment = 256 << 10
	rigSpare   = 8 << 20
	rigFiller  = 5 << 20
)

func newRig(t *testing.T, strict bool, change ...func(*core.Config)) *rig {
	m := mastertest.New(t, append(change, func(c *core.Config) {
		c.MultiTenant = strict
		c.EvictionWatermark, c.EvictionRatio, c.AllocationWait = 0.5, 1, 0
		c.BreakerMinClients = 100
	})...)
	r := &rig{t: t, m: m, s: newSketch(strict, m.Clock.Now(), 4), strict: strict, tenant: "t"}
	for n := range uint64(4) {
		m.Mount(n+1, rigName(n+1), rigSize(n+1))
	}
	r.policies(rigQuota)
	return r
}

func rigName(n uint64) string { return fmt.Sprint("s", n) }

func rigSize(n uint64) uint64 {
	if n == rigWorker {
		return rigSpare
	}
	return rigSegment
}

// policies gives the tenant a quota, or none.
func (r *rig) policies(quota int) {
	if !r.strict {
		return
	}
	pairs := []any{"f", 7 << 20}
	if quota > 0 {
		pairs = append(pairs, r.tenant, quota)
	}
	r.m.Policies(pairs...)
	r.s.closed = quota == 0
}

func (r *rig) failf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("after %v: %s", r.trace, fmt.Sprintf(format, args...))
}

// same compares the answers of both to a call, and then what is charged and in use.
func (r *rig) same(got, want any, call string, args ...any) {
	r.t.Helper()
	r.trace = append(r.trace, fmt.Sprintf(call, args...))
	if got != want {
		r.failf("the master answers %v, the sketch %v", got, want)
	}
	r.check()
}

// check compares what is charged, in all and by the parts of the ledger, and how much memory is used.
func (r *rig) check() {
	r.t.Helper()
	if got, want := r.m.ChargedOf(r.tenant), r.s.charged(); got != want {
		r.failf("%d bytes are charged, not %d", got, want)
	}
	if r.strict {
		if got, want := r.m.Charged(r.tenant), r.s.charged(); got != want {
			r.failf("charged_bytes is %d, not %d", got, want)
		}
	}
	ledger, works, ok := r.m.LedgerOf(r.tenant, "k")
	got := fmt.Sprint(ok, ledger.Pending(), ledger.Committed(), ledger.Replaced(), works)
	if want := fmt.Sprint(r.s.exists, r.s.pending, r.s.committed, r.s.replaced, r.s.works()); got != want {
		r.failf("the ledger is %s, not %s", got, want)
	}
	if got, want := r.m.Stats().AllocatedBytes, r.s.allocated(); got != want {
		r.failf("%d bytes are in use, not %d", got, want)
	}
	if err := r.m.Check(); err != nil {
		r.failf("%v", err)
	}
}

// Calls to both.

// placed reads where replicas were put, and says so if they may not be there.
func (r *rig) placed(replicas []object.ReplicaDescriptor, wanted uint64) (at []uint64) {
	var most uint64
	for n := range uint64(4) {
		if r.s.placeable(n + 1) {
			most++
		}
	}
	for _, name := range names(replicas) {
		for n := range uint64(4) {
			if rigName(n+1) == name {
				at = append(at, n+1)
				if !r.s.placeable(n + 1) {
					r.failf("a replica was put on %s", name)
				}
			}
		}
	}
	if uint64(len(at)) != min(wanted, most) {
		r.failf("%d replicas of %d", len(at), wanted)
	}
	return at
}

func (r *rig) write(upsert bool, client, size, n uint64) errcode.Code {
	call, sketched, verb := r.m.PutStart, r.s.put, "put"
	if upsert {
		call, sketched, verb = r.m.UpsertStart, r.s.upsert, "upsert"
	}
	cfg := mastertest.Config(mastertest.Replicas(n), mastertest.Prefer("s1", "s2", "s3"))
	inPlace := upsert && r.s.count(inMemory) > 0 && !r.s.writing() && r.s.size == size && r.s.lease <= r.s.now
	replicas, code := call(mastertest.ID(client), r.tenant, "k", size, cfg, nil)
	var at []uint64
	if code == errcode.OK && !inPlace {
		at = r.placed(replicas, n)
	}
	r.same(code, sketched(client, size, n, at), "%s of %d bytes, %d replicas, by %d", verb, size, n, client)
	return code
}

func (r *rig) put(client, size, n uint64) { r.write(false, client, size, n) }

func (r *rig) upsert(client, size uint64) { r.write(true, client, size, 1) }

func (r *rig) end(client uint64) {
	r.same(r.m.PutEnd(mastertest.ID(client), r.tenant, &object.Meta{Key: "k"}, object.ReplicaAll), r.s.end(client), "end by %d", client)
}

func (r *rig) revoke(client uint64) {
	r.same(r.m.PutRevoke(mastertest.ID(client), r.tenant, "k", object.ReplicaAll), r.s.revoke(client), "revoke by %d", client)
}

func (r *rig) copy(client, source uint64, targets ...uint64) {
	var to []string
	for _, n := range targets {
		to = append(to, rigName(n))
	}
	_, code := r.m.CopyStart(mastertest.ID(client), r.tenant, "k", rigName(source), to)
	r.same(code, r.s.replicate(client, source, targets, false), "copy from %d to %v", source, targets)
}

func (r *rig) move(client, source, target uint64) {
	_, code := r.m.MoveStart(mastertest.ID(client), r.tenant, "k", rigName(source), rigName(target))
	r.same(code, r.s.replicate(client, source, []uint64{target}, true), "move from %d to %d", source, target)
}

func (r *rig) endWork(client uint64, move, revoke bool) {
	call := r.m.CopyEnd
	switch {
	case move && revoke:
		call = r.m.MoveRevoke
	case move:
		call = r.m.MoveEnd
	case revoke:
		call = r.m.CopyRevoke
	}
	r.same(call(mastertest.ID(client), r.tenant, "k"), r.s.finish(client, move, revoke), "end of a copy by %d (move %v, revoked %v)", client, move, revoke)
}

func (r *rig) read() {
	r.same(r.m.Get(r.tenant, "k"), r.s.read(), "read")
}

func (r *rig) remove(force bool) {
	r.same(r.m.Remove(r.tenant, "k", force), r.s.remove(force), "remove, force %v", force)
}

// removeMany removes by the calls that count.
func (r *rig) removeMany(pattern bool) {
	want := int64(0)
	if r.s.remove(true) == errcode.OK {
		want = 1
	}
	if pattern {
		got, _ := r.m.RemoveByRegex(r.tenant, "^k$", true)
		r.same(got, want, "removal by a pattern")
		return
	}
	r.same(r.m.RemoveAll(r.tenant, true), want, "removal of all")
}

func (r *rig) batchRemove(force bool) {
	r.same(r.m.BatchRemove(r.tenant, []string{"k"}, force, nil)[0].Code, r.s.remove(force), "batch removal, force %v", force)
}

func (r *rig) clear(client, at uint64) {
	name := ""
	if at != 0 {
		name = rigName(at)
	}
	got, _ := r.m.BatchReplicaClear(r.tenant, []string{"k"}, mastertest.ID(client), name)
	r.same(len(got) == 1, r.s.clear(client, at), "clearing of %q by %d", name, client)
}

func (r *rig) advance(seconds int) {
	for range seconds {
		r.m.Advance(time.Second)
		r.s.second()
	}
	r.same(nil, nil, "%d s", seconds)
}

func (r *rig) unmount(n uint64) {
	r.s.unmount(n)
	r.same(r.m.UnmountSegment(mastertest.Segment(n, rigName(n), 0).ID, mastertest.ID(n)), errcode.OK, "unmount of %d", n)
}

func (r *rig) graceful(n uint64, seconds int) {
	want := errcode.SegmentNotFound
	if c := r.s.clients[n]; c.mounted {
		want = errcode.OK
		if ends := r.s.now + int64(seconds)*int64(time.Second); c.graceEnds == 0 || ends < c.graceEnds {
			c.graceEnds = ends
		}
	}
	r.same(r.m.GracefulUnmountSegment(mastertest.Segment(n, rigName(n), 0).ID, mastertest.ID(n), uint64(seconds)*1000), want, "graceful unmount of %d in %d s", n, seconds)
}

func (r *rig) silence(n uint64) {
	r.m.Silence(n)
	r.s.clients[n].silent = true
	r.same(nil, nil, "silence of %d", n)
}

// back has a client ping again, and mount its segment if that has gone.
func (r *rig) back(n uint64) {
	r.m.Revive(n)
	r.m.Ping(mastertest.ID(n))
	c := r.s.clients[n]
	if !c.mounted {
		r.m.Mount(n, rigName(n), rigSize(n))
	}
	*c = sketchClient{mounted: true, disk: c.disk, ping: r.s.now, graceEnds: c.graceEnds}
	r.same(nil, nil, "return of %d", n)
}

// spare reports whether there is memory to put something under pressure with.
func (r *rig) spare() bool { return r.s.placeable(rigWorker) }

// pressPool fills the pool far beyond its watermark, so that whatever can go does.
func (r *rig) pressPool() {
	if !r.spare() {
		return
	}
	r.advance(2) // what could not be evicted is looked at again after a second
	tenantName := r.tenant
	if r.strict {
		tenantName = "f"
	}
	r.m.MustPut(tenantName, "filler", rigFiller, mastertest.HardPin, mastertest.Prefer("s4"))
	r.s.now += int64(time.Microsecond)
	r.m.Step()
	r.s.step()
	r.s.evict()
	if code := r.m.Remove(tenantName, "filler", true); code != errcode.OK {
		r.failf("removal of the filler: %v", code)
	}
	r.same(nil, nil, "eviction by the pool")
}

// pressQuota writes what the quota has room for only without what can be evicted of the object.
func (r *rig) pressQuota() {
	if !r.strict || r.s.closed || !r.spare() {
		return
	}
	r.advance(2)
	before := r.s.charged()
	freed := r.s.evict()
	size, want := rigQuota-before+freed, errcode.OK
	if freed == 0 {
		size, want = size+1, errcode.TenantQuotaExceeded
	}
	code := r.m.Start(r.tenant, "q", size, mastertest.Prefer("s4"))
	if code == errcode.OK {
		if code := r.m.PutRevoke(mastertest.ID(1), r.tenant, "q", object.ReplicaAll); code != errcode.OK {
			r.failf("revoke: %v", code)
		}
	}
	r.same(code, want, "a write of %d bytes", size)
}

// pressTenant lowers the quota until the tenant is above its watermark.
func (r *rig) pressTenant() {
	if !r.strict || r.s.closed {
		return
	}
	r.advance(2)
	r.m.Policies(r.tenant, 1)
	r.m.Step()
	if r.s.effective() > 0 && r.s.charged() > r.s.replaced {
		r.s.evict()
	}
	r.policies(rigQuota)
	r.same(nil, nil, "eviction by the tenant's watermark")
}

// lowerQuota lowers the quota below what is charged for a moment: nothing goes, and nothing is admitted.
func (r *rig) lowerQuota() {
	if !r.strict || r.s.closed {
		return
	}
	r.m.Policies(r.tenant, 1)
	code := r.m.Start(r.tenant, "q", 2)
	r.policies(rigQuota)
	r.same(code, errcode.TenantQuotaExceeded, "a write while the quota is 1")
}

// step is something done to a rig, by name.
type step struct {
	name string
	do   func(*rig)
}

// operations are what is interrupted: each begins something and leaves it under way.
var operations = []step{
	{"put", func(r *rig) { r.put(rigWriter, 1000, 1) }},
	{"put of three replicas", func(r *rig) { r.put(rigWriter, 1000, 3) }},
	{"upsert of the same size", func(r *rig) { r.stored(2); r.upsert(rigWriter, 1000) }},
	{"upsert of the same size, leased", func(r *rig) { r.stored(1); r.read(); r.upsert(rigWriter, 1000) }},
	{"upsert of another size", func(r *rig) { r.stored(1); r.upsert(rigWriter, 2500) }},
	{"upsert of another size of two replicas", func(r *rig) { r.stored(2); r.upsert(rigWriter, 400) }},
	{"copy", func(r *rig) { r.stored(1); r.copy(rigWorker, 1, 2) }},
	{"copy to two", func(r *rig) { r.stored(1); r.copy(rigWorker, 1, 2, 3) }},
	{"copy of two replicas", func(r *rig) { r.stored(2); r.copy(rigWorker, 1, 3) }},
	{"copy to where it is", func(r *rig) { r.stored(2); r.copy(rigWorker, 1, 2) }},
	{"move", func(r *rig) { r.stored(1); r.move(rigWorker, 1, 2) }},
	{"move of one of two", func(r *rig) { r.stored(2); r.move(rigWorker, 1, 3) }},
	{"move to where it is", func(r *rig) { r.stored(2); r.move(rigWorker, 1, 2) }},
}

func (r *rig) stored(n uint64) {
	r.put(rigWriter, 1000, n)
	r.end(rigWriter)
	r.advance(1)
}

// endings bring to its end whatever is under way.
var endings = []step{
	{"ended", func(r *rig) { r.finishAll(false) }},
	{"revoked", func(r *rig) { r.finishAll(true) }},
}

func (r *rig) finishAll(revoked bool) {
	switch {
	case r.s.work != nil:
		r.endWork(rigWorker, r.s.work.move, revoked)
	case revoked:
		r.revoke(rigWriter)
	default:
		r.end(rigWriter)
	}
}

// interruptions are what may come in between.
var interruptions = []step{
	{"nothing", func(*rig) {}},
	{"end by another client", func(r *rig) {
		r.end(rigOther)
		r.revoke(rigOther)
		r.endWork(rigOther, false, false)
		r.endWork(3, false, false)
		r.endWork(3, true, true)
	}},
	{"end of something else", func(r *rig) { r.endWork(rigWorker, r.s.work == nil || !r.s.work.move, false) }},
	{"end", func(r *rig) { r.finishAll(false) }},
	{"revoke", func(r *rig) { r.finishAll(true) }},
	{"discard timeout", func(r *rig) { r.advance(31) }},
	{"put before the discard timeout", func(r *rig) { r.advance(29); r.put(rigOther, 700, 2) }},
	{"put after the discard timeout", func(r *rig) { r.advance(31); r.put(rigOther, 700, 2) }},
	{"release timeout", func(r *rig) { r.advance(602) }},
	{"put taken over and ended", func(r *rig) { r.advance(31); r.put(rigOther, 700, 1); r.end(rigOther) }},
	{"source's client suspected", func(r *rig) { r.silence(1); r.advance(12) }},
	{"source's client back in time", func(r *rig) { r.silence(1); r.advance(12); r.back(1) }},
	{"source's client offline", func(r *rig) { r.silence(1); r.advance(33) }},
	{"target's client suspected", func(r *rig) { r.silence(2); r.advance(12) }},
	{"target's client offline", func(r *rig) { r.silence(2); r.advance(33) }},
	{"copier suspected", func(r *rig) { r.silence(rigWorker); r.advance(12) }},
	{"copier offline", func(r *rig) { r.silence(rigWorker); r.advance(33) }},
	{"copier offline and back", func(r *rig) { r.silence(rigWorker); r.advance(33); r.back(rigWorker) }},
	{"both clients offline", func(r *rig) { r.silence(1); r.silence(2); r.advance(33) }},
	{"source unmounted", func(r *rig) { r.unmount(1) }},
	{"target unmounted", func(r *rig) { r.unmount(2) }},
	{"other target unmounted", func(r *rig) { r.unmount(3) }},
	{"source unmounted and back", func(r *rig) { r.unmount(1); r.back(1) }},
	{"all unmounted", func(r *rig) { r.unmount(1); r.unmount(2); r.unmount(3) }},
	{"source's grace", func(r *rig) { r.graceful(1, 5); r.advance(2) }},
	{"source's grace ends", func(r *rig) { r.graceful(1, 5); r.advance(6) }},
	{"target's grace ends", func(r *rig) { r.graceful(2, 5); r.advance(6) }},
	{"read", func(r *rig) { r.read() }},
	{"remove", func(r *rig) { r.remove(false) }},
	{"remove of a leased one", func(r *rig) { r.read(); r.remove(false); r.batchRemove(false) }},
	{"remove by force", func(r *rig) { r.remove(true) }},
	{"batch removal", func(r *rig) { r.batchRemove(true) }},
	{"removal of all", func(r *rig) { r.removeMany(false) }},
	{"removal by a pattern", func(r *rig) { r.removeMany(true) }},
	{"clearing", func(r *rig) { r.clear(rigWriter, 0) }},
	{"clearing of the source", func(r *rig) { r.clear(rigWriter, 1) }},
	{"clearing of the target", func(r *rig) { r.clear(rigWriter, 2) }},
	{"clearing by another client", func(r *rig) { r.clear(rigOther, 0) }},
	{"eviction by the pool", (*rig).pressPool},
	{"eviction of what was read", func(r *rig) { r.read(); r.pressPool() }},
	{"eviction by the quota", (*rig).pressQuota},
	{"eviction by the watermark", (*rig).pressTenant},
	{"put", func(r *rig) { r.put(rigOther, 1000, 1) }},
	{"upsert of the same size by another", func(r *rig) { r.upsert(rigOther, 1000) }},
	{"upsert of another size by another", func(r *rig) { r.upsert(rigOther, 3000) }},
	{"upsert by the same client", func(r *rig) { r.upsert(rigWriter, 3000) }},
	{"copy", func(r *rig) { r.copy(3, 1, 3) }},
	{"move", func(r *rig) { r.move(3, 1, 3) }},
	{"copy by a stranger", func(r *rig) { r.copy(rigOther, 1, 3); r.move(rigOther, 1, 1) }},
	{"policy removed", func(r *rig) { r.policies(0); r.put(rigOther, 1, 1); r.upsert(rigOther, 1) }},
	{"policy removed and back", func(r *rig) { r.policies(0); r.advance(3); r.policies(rigQuota) }},
	{"quota lowered", (*rig).lowerQuota},
}

// bothModes runs a test with strict tenants and without.
func bothModes(t *testing.T, f func(t *testing.T, strict bool)) {
	for _, strict := range []bool{true, false} {
		t.Run(map[bool]string{true: "strict", false: "not strict"}[strict], func(t *testing.T) {
			t.Parallel()
			f(t, strict)
		})
	}
}

// TestEveryInterruption walks every operation, with every interruption while it is under way and after it
// has ended, and ends what is still under way both ways. After each call the code, the charge in all and
// by its parts, and the memory in use must be what the sketch says, and all invariants hold. At last
// everything times out and is removed, and nothing is charged or in use.
func TestEveryInterruption(t *testing.T) {
	bothModes(t, func(t *testing.T, strict bool) {
		for _, op := range operations {
			for _, in := range interruptions {
				for _, end := range endings {
					for _, late := range []bool{false, true} {
						r := newRig(t, strict)
						op.do(r)
						if late {
							end.do(r)
						}
						in.do(r)
						r.finishAll(end.name == "revoked")
						r.policies(rigQuota)
						r.m.Drain(t)
						if t.Failed() {
							t.Fatalf("%s, %s, %s, late %v", op.name, in.name, end.name, late)
						}
					}
				}
			}
		}
	})
}

// TestRandomInterruptions does operations, interruptions and endings in random order.
// CORE_MODEL_OPS and CORE_MODEL_SEED are as for TestModel.
func TestRandomInterruptions(t *testing.T) { walkRandomly(t, operations, interruptions, endings) }

// walkRandomly does what TestRandomInterruptions says with some steps.
func walkRandomly(t *testing.T, ops, ins, ends []step, change ...func(*core.Config)) {
	n, seed := modelOps(t, 4000)
	bothModes(t, func(t *testing.T, strict bool) {
		random := rand.New(rand.NewPCG(seed, 7))
		for done := 0; done < n && !t.Failed(); {
			r := newRig(t, strict, change...)
			for range 4 + random.IntN(30) {
				r.randomly(random, ops, ins, ends)
				done++
				if t.Failed() {
					break
				}
			}
			r.policies(rigQuota)
			r.m.Drain(t)
		}
	})
}

func (r *rig) randomly(random *rand.Rand, operations, interruptions, endings []step) {
	var s step
	switch n := random.IntN(10); {
	case n < 3:
		s = operations[random.IntN(len(operations))]
	case n < 5:
		s = endings[random.IntN(len(endings))]
	case n < 6:
		s = step{"return", func(r *rig) {
			if n := 1 + random.Uint64N(4); r.s.clients[n].graceEnds == 0 {
				r.back(n)
			}
		}}
	case n < 7:
		s = step{"other client's", func(r *rig) { r.end(rigOther); r.endWork(3, random.IntN(2) == 0, random.IntN(2) == 0) }}
	default:
		s = interruptions[random.IntN(len(interruptions))]
	}
	if r.s.closed && random.IntN(2) == 0 {
		r.policies(rigQuota)
	}
	s.do(r)
}

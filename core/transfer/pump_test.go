package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/core/transfer/transfertest"
)

const kilo = 1 << 10

// rig is a pump between owners "a", "b", "c" and "d" that lend 8 MiB at address 4096 each.
type rig struct {
	*transfer.Pump
	clock  transfertest.Clock
	memory transfertest.Memory
}

func newRig(t *testing.T, change ...func(*transfer.Config)) *rig {
	r := new(rig)
	for _, owner := range []string{"a", "b", "c", "d"} {
		r.memory.Lend(owner, 4096, 8<<20)
	}
	cfg := transfer.Config{Carrier: &r.memory, Now: r.clock.Now, After: r.clock.After, Memory: 256 * kilo, Concurrency: 2}
	for _, f := range change {
		f(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	r.Pump = transfer.New(cfg)
	t.Cleanup(func() {
		r.memory.Before(nil)
		r.Close()
		if buffers, calls, most := r.memory.Use(); buffers != 0 || calls != 0 || most > cfg.Memory {
			t.Errorf("at the end there are %d buffers and %d calls; there were %d bytes of buffers, may be %d", buffers, calls, most, cfg.Memory)
		}
		if s := r.Stats(); s.Running != 0 || s.BufferBytes != 0 || s.Abandoned != 0 {
			t.Errorf("at the end: %+v", s)
		}
		if n := r.clock.Timers(); n != 0 {
			t.Errorf("%d timers are left", n)
		}
	})
	return r
}

func at(owner string, address uint64) transfer.Place {
	return transfer.Place{Owner: owner, Address: 4096 + address}
}

// fill writes random bytes.
func (r *rig) fill(t *testing.T, size int, places ...transfer.Place) (content []byte, sum *uint64) {
	t.Helper()
	content = make([]byte, size)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	for _, p := range places {
		if err := r.memory.Poke(p, content); err != nil {
			t.Fatal(err)
		}
	}
	n := uint64(transfer.Sum(content))
	return content, &n
}

func (r *rig) want(t *testing.T, p transfer.Place, content []byte) {
	t.Helper()
	got, err := r.memory.Peek(p, len(content))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%v does not have the %d bytes (%v)", p, len(content), err)
	}
}

func TestCarry(t *testing.T) {
	for _, size := range []int{0, 1, 64*kilo - 1, 64 * kilo, 64*kilo + 1, 3<<20 + 17} {
		for targets := 1; targets <= 3; targets++ {
			t.Run(fmt.Sprint(size, " to ", targets), func(t *testing.T) {
				r := newRig(t)
				content, sum := r.fill(t, size, at("a", 5))
				j := &transfer.Job{Size: uint64(size), Sources: []transfer.Place{at("a", 5)}, Checksum: sum}
				for _, owner := range []string{"b", "c", "d"}[:targets] {
					j.Targets = append(j.Targets, at(owner, 99))
				}
				result := r.Carry(t.Context(), j)
				if result.Err != nil || result.Source != 0 || result.Unsettled() || j.Done() != uint64(size) {
					t.Fatalf("%+v, %d bytes done", result, j.Done())
				}
				for _, p := range j.Targets {
					r.want(t, p, content)
				}
				if s := r.Stats(); s.Read != uint64(size) || s.Written != uint64(size*targets) {
					t.Errorf("counted %+v", s)
				}
			})
		}
	}
}

// While a piece is written the next is read.
func TestReadsWhileItWrites(t *testing.T) {
	r := newRig(t)
	content, _ := r.fill(t, 128*kilo, at("a", 0))
	second := make(chan struct{})
	r.memory.Before(func(ctx context.Context, c transfertest.Call) error {
		switch {
		case !c.Write && c.At == at("a", 64*kilo):
			close(second)
		case c.Write && c.At == at("b", 0):
			<-second
		}
		return nil
	})
	if result := r.Carry(t.Context(), &transfer.Job{Size: 128 * kilo, Sources: []transfer.Place{at("a", 0)}, Targets: []transfer.Place{at("b", 0)}}); result.Err != nil {
		t.Fatal(result.Err)
	}
	r.want(t, at("b", 0), content)
}

// failing fails calls at an owner from an offset on.
func failing(owner string, write bool, from uint64) func(context.Context, transfertest.Call) error {
	return func(_ context.Context, c transfertest.Call) error {
		if c.Write == write && c.At.Owner == owner && c.At.Address >= 4096+from {
			return errors.New("broken")
		}
		return nil
	}
}

// hang holds calls at an owner until their context ends.
func (r *rig) hang(owner string, write bool) {
	r.memory.Before(func(ctx context.Context, c transfertest.Call) error {
		if c.Write == write && c.At.Owner == owner {
			return r.memory.Hold(ctx.Done())
		}
		return nil
	})
}

// awaitHang waits until so many calls of the carrier hang and nothing else goes on.
func (r *rig) awaitHang(hung int) {
	for {
		if _, calls, _ := r.memory.Use(); r.memory.Held() == hung && calls == hung && r.clock.Timers() == hung {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func TestFailures(t *testing.T) {
	const size = 300 * kilo
	gone := func(index int) func(int) error {
		return func(i int) error {
			if i == index {
				return errors.New("unmounted")
			}
			return nil
		}
	}
	for _, c := range []struct {
		name   string
		before func(context.Context, transfertest.Call) error
		change func(r *rig, j *transfer.Job)
		hangs  bool
		cause  transfer.Cause
		source int
		bad    [2]bool // targets that aren't whole
		loose  [2]bool // and unsettled
		text   string
	}{
		{name: "source fails at once", before: failing("a", false, 0), source: 1},
		{name: "source fails half way", before: failing("a", false, 128*kilo), source: 1},
		{name: "source goes", change: func(_ *rig, j *transfer.Job) { j.SourceGone = gone(0) }, source: 1},
		{name: "source has no such memory", change: func(r *rig, _ *transfer.Job) { r.memory.TakeBack("a") }, source: 1},
		{name: "source has other bytes", change: func(r *rig, _ *transfer.Job) { _ = r.memory.Poke(at("a", 77), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}) }, source: 1},
		{name: "source hangs", change: func(r *rig, _ *transfer.Job) { r.hang("a", false) }, hangs: true, source: 1},
		{name: "all sources fail", before: func(ctx context.Context, c transfertest.Call) error {
			return errors.Join(failing("a", false, 0)(ctx, c), failing("b", false, 70*kilo)(ctx, c))
		}, cause: transfer.SourceUnreachable, source: -1, bad: [2]bool{true, true}, text: "source_unreachable at b: broken"},
		{name: "all sources have other bytes", change: func(r *rig, j *transfer.Job) { *j.Checksum++ }, cause: transfer.ChecksumMismatch, source: -1, bad: [2]bool{true, true}, text: "checksum_mismatch at b: the bytes read sum up to 0x"},
		{name: "one target fails", before: failing("c", true, 64*kilo), cause: transfer.TargetUnreachable, bad: [2]bool{true, false}, loose: [2]bool{true, false}, text: "target_unreachable at c: broken"},
		{name: "one target goes", change: func(_ *rig, j *transfer.Job) { j.TargetGone = gone(1) }, cause: transfer.TargetUnreachable, bad: [2]bool{false, true}, text: "target_unreachable at d: unmounted"},
		{name: "one target hangs", change: func(r *rig, _ *transfer.Job) { r.hang("c", true) }, hangs: true, cause: transfer.Stalled, bad: [2]bool{true, false}, loose: [2]bool{true, false}, text: "stalled at c: nothing came in 30s"},
		{name: "all targets fail", before: func(ctx context.Context, c transfertest.Call) error {
			return errors.Join(failing("c", true, 0)(ctx, c), failing("d", true, 0)(ctx, c))
		}, cause: transfer.TargetUnreachable, source: -1, bad: [2]bool{true, true}, loose: [2]bool{true, true}},
		{name: "a target fails and then the source", before: func(ctx context.Context, c transfertest.Call) error {
			return errors.Join(failing("c", true, 0)(ctx, c), failing("a", false, 256*kilo)(ctx, c))
		}, cause: transfer.TargetUnreachable, source: 1, bad: [2]bool{true, false}, loose: [2]bool{true, false}},
		{name: "no sources", change: func(_ *rig, j *transfer.Job) { j.Sources = nil }, cause: transfer.SourceUnreachable, source: -1, bad: [2]bool{true, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			content, sum := r.fill(t, size, at("a", 0), at("b", 7))
			j := &transfer.Job{Size: size, Sources: []transfer.Place{at("a", 0), at("b", 7)}, Targets: []transfer.Place{at("c", 3), at("d", 0)}, Checksum: sum}
			r.memory.Before(c.before)
			if c.change != nil {
				c.change(r, j)
			}
			done := make(chan transfer.Result)
			go func() { done <- r.Carry(t.Context(), j) }()
			if c.hangs {
				r.awaitHang(1)
				if c.source == 1 { // it has less time where there is another
					r.clock.Set(3 * time.Second)
				} else {
					r.clock.Set(30 * time.Second)
				}
			}
			result := <-done
			if transfer.CauseOf(result.Err) != c.cause || result.Source != c.source {
				t.Errorf("%v from source %d, want %q from %d", result.Err, result.Source, c.cause, c.source)
			}
			if result.Err != nil && !strings.HasPrefix(result.Err.Error(), c.text) {
				t.Errorf("the error is %q, want %q", result.Err, c.text)
			}
			if bad := len(result.Bad); result.Source >= 0 && bad != result.Source {
				t.Errorf("%d sources are said to be bad: %v", bad, result.Bad)
			}
			for i, p := range j.Targets {
				got := result.Targets[i]
				if (got.Err != nil) != c.bad[i] || got.Unsettled != c.loose[i] {
					t.Errorf("target %d: %+v, want it bad %v, unsettled %v", i, got, c.bad[i], c.loose[i])
				}
				if got.Err == nil {
					r.want(t, p, content)
				}
			}
		})
	}
}

func TestCancel(t *testing.T) {
	for _, write := range []bool{false, true} {
		r := newRig(t)
		r.fill(t, 300*kilo, at("a", 0))
		ctx, cancel := context.WithCancel(t.Context())
		r.memory.Before(func(ctx context.Context, c transfertest.Call) error {
			if c.Write == write {
				cancel()
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		result := r.Carry(ctx, &transfer.Job{Size: 300 * kilo, Sources: []transfer.Place{at("a", 0), at("a", 0)}, Targets: []transfer.Place{at("b", 0)}})
		if transfer.CauseOf(result.Err) != transfer.Canceled || result.Source != -1 || result.Targets[0].Unsettled != write {
			t.Errorf("canceled while it writes %v: %+v", write, result)
		}
	}
}

func TestTimeout(t *testing.T) {
	r := newRig(t, func(c *transfer.Config) { c.Timeout, c.Stall = 10*time.Second, time.Minute })
	r.hang("a", false)
	done := make(chan transfer.Result)
	go func() {
		done <- r.Carry(t.Context(), &transfer.Job{Size: 1, Sources: []transfer.Place{at("a", 0)}, Targets: []transfer.Place{at("b", 0)}})
	}()
	r.clock.AwaitTimer(10 * time.Second)
	for r.memory.Held() == 0 {
		time.Sleep(time.Millisecond)
	}
	r.clock.Set(10 * time.Second)
	if result := <-done; transfer.CauseOf(result.Err) != transfer.TimedOut {
		t.Errorf("%v", result.Err)
	}
}

// Calls that don't come back keep their buffers, and nothing else.
func TestCallsThatDontReturn(t *testing.T) {
	r := newRig(t)
	content, _ := r.fill(t, 100, at("a", 0))
	release := make(chan struct{})
	r.memory.Before(func(_ context.Context, c transfertest.Call) error {
		if c.At.Owner == "d" {
			return r.memory.Hold(release)
		}
		return nil
	})
	carry := func(target string) <-chan transfer.Result {
		done := make(chan transfer.Result, 1)
		go func() {
			done <- r.Carry(t.Context(), &transfer.Job{Size: 100, Sources: []transfer.Place{at("a", 0)}, Targets: []transfer.Place{at(target, 0)}})
		}()
		return done
	}
	done := carry("d")
	r.awaitHang(1)
	r.clock.Set(30 * time.Second)
	r.clock.AwaitTimer(time.Second) // for it to stop
	r.clock.Set(time.Second)
	if result := <-done; transfer.CauseOf(result.Err) != transfer.Stalled || !result.Unsettled() || !strings.Contains(result.Err.Error(), "did not stop") {
		t.Errorf("%+v", result)
	}
	if s := r.Stats(); s.Abandoned != 1 {
		t.Errorf("%+v", s)
	}
	for range 5 { // the other turn is still there
		if result := <-carry("b"); result.Err != nil {
			t.Error(result.Err)
		}
	}
	r.want(t, at("b", 0), content)
	close(release)
	for r.Stats().Abandoned != 0 {
		time.Sleep(time.Millisecond)
	}
}

// However many large objects there are, a small one gets its turn after some pieces of each.
func TestSmallObjectsArentStarved(t *testing.T) {
	r := newRig(t, func(c *transfer.Config) { c.Concurrency, c.Memory = 1, 128*kilo })
	r.fill(t, 100, at("a", 0))
	var mu sync.Mutex
	pieces, small, queued := 0, 0, make(chan struct{})
	var wg sync.WaitGroup
	r.memory.Before(func(_ context.Context, c transfertest.Call) error {
		mu.Lock()
		first := pieces == 0
		if c.Write && c.At.Owner == "b" {
			pieces++
		} else if c.Write && c.At.Owner == "c" {
			small = pieces
		}
		mu.Unlock()
		if first && c.At.Owner == "a" && !c.Write {
			<-queued
		}
		return nil
	})
	wg.Go(func() {
		if result := r.Carry(t.Context(), &transfer.Job{Size: 6 << 20, Sources: []transfer.Place{at("a", 0)}, Targets: []transfer.Place{at("b", 0)}}); result.Err != nil {
			t.Error(result.Err)
		}
	})
	for r.Stats().BufferBytes == 0 { // it sits
		time.Sleep(time.Millisecond)
	}
	wg.Go(func() {
		if result := r.Carry(t.Context(), &transfer.Job{Size: 100, Sources: []transfer.Place{at("a", 0)}, Targets: []transfer.Place{at("c", 0)}}); result.Err != nil {
			t.Error(result.Err)
		}
	})
	for !r.Wanted() {
		time.Sleep(time.Millisecond)
	}
	close(queued)
	wg.Wait()
	if small != 8 || pieces != 96 {
		t.Errorf("the small one came after %d pieces of %d", small, pieces)
	}
}

func TestBandwidth(t *testing.T) {
	r := newRig(t, func(c *transfer.Config) { c.Bandwidth = 64 * kilo })
	content, _ := r.fill(t, 256*kilo, at("a", 0))
	done := make(chan transfer.Result)
	go func() {
		done <- r.Carry(t.Context(), &transfer.Job{Size: 256 * kilo, Sources: []transfer.Place{at("a", 0)}, Targets: []transfer.Place{at("b", 0)}})
	}()
	began := r.clock.Now()
	for steps := 0; ; steps++ {
		select {
		case result := <-done:
			if result.Err != nil {
				t.Fatal(result.Err)
			}
			r.want(t, at("b", 0), content)
			if took := time.Duration(r.clock.Now() - began); took < 2850*time.Millisecond || took > 4*time.Second {
				t.Errorf("256 KiB at 64 KiB/s took %v", took)
			}
			if w := r.Stats().Waited; w < 2*time.Second {
				t.Errorf("waited for %v", w)
			}
			return
		default:
		}
		if r.clock.Timers() > 0 && r.Waiting() {
			r.clock.Set(50 * time.Millisecond)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func TestClosedPump(t *testing.T) {
	r := newRig(t)
	r.Close()
	result := r.Carry(t.Context(), &transfer.Job{Size: 1, Sources: []transfer.Place{at("a", 0)}, Targets: []transfer.Place{at("b", 0)}})
	if !errors.Is(result.Err, transfer.ErrClosed) {
		t.Errorf("%v", result.Err)
	}
}

func TestConfigsThatMakeNoSense(t *testing.T) {
	for _, c := range []transfer.Config{{Memory: -1}, {Memory: 100 * kilo}, {Concurrency: 1000}, {Stall: -1}, {Timeout: -1}} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if err := (&transfer.Config{}).Validate(); err != nil {
		t.Error(err)
	}
}

// Many at a time with random faults: what is said to be whole is, and nothing leaks.
func TestPumpHammer(t *testing.T) {
	r := newRig(t, func(c *transfer.Config) { c.Concurrency, c.Memory = 3, 384*kilo })
	const each, workers = 40, 8
	r.memory.Before(func(_ context.Context, c transfertest.Call) error {
		if rand.IntN(40) == 0 {
			return errors.New("broken")
		}
		return nil
	})
	whole := 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			base := uint64(w) * 1 << 20
			for range each {
				size := rand.IntN(1 << 19)
				content, sum := r.fill(t, size, at("a", base), at("b", base))
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(10) == 0 {
					cancel()
				}
				j := &transfer.Job{Size: uint64(size), Sources: []transfer.Place{at("a", base), at("b", base)}, Targets: []transfer.Place{at("c", base), at("d", base)}, Checksum: sum}
				result := r.Carry(ctx, j)
				cancel()
				for i, p := range j.Targets {
					if result.Targets[i].Err == nil {
						r.want(t, p, content)
						mu.Lock()
						whole++
						mu.Unlock()
					}
				}
			}
		})
	}
	wg.Wait()
	if whole < each*workers/2 {
		t.Errorf("only %d targets were written whole", whole)
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// A ground is an owner's memory and what it must hold. It is cut into stripes, each with one worker, so that it
// is known at any time which bytes may lie where.
type ground struct {
	owner   string
	pid     int
	address uint64
	bytes   []byte // as it must be
	doubts  []doubt
}

const (
	stripes     = 3
	stripeBytes = 4 << 20
	groundBytes = stripes * stripeBytes
)

// doubt is a piece that a write has failed to write: each of its bytes is the old one or the new one.
type doubt struct {
	at   int
	data []byte
}

// fill returns the bytes that an owner's memory holds at first.
func fill(seed uint64) []byte {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	b := make([]byte, groundBytes)
	rand.NewChaCha8(key).Read(b)
	return b
}

// verify compares every byte of the owner's memory with what it must be.
func (g *ground) verify() error {
	is, err := g.read()
	if err != nil {
		return err
	}
	return g.compare(is)
}

// read looks at the owner's memory past the code that is tested; the owner may be stopped.
func (g *ground) read() ([]byte, error) { return g.readSize(groundBytes) }

func (g *ground) readSize(n int) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", g.pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	is := make([]byte, n)
	if _, err := f.ReadAt(is, int64(g.address)); err != nil {
		return nil, fmt.Errorf("looking at the memory of process %d: %w", g.pid, err)
	}
	return is, nil
}

// compare settles all doubts by what the memory is.
func (g *ground) compare(is []byte) error {
	for _, d := range g.doubts {
		old, now := g.bytes[d.at:d.at+len(d.data)], is[d.at:d.at+len(d.data)]
		for i, b := range now {
			if b != old[i] && b != d.data[i] {
				return fmt.Errorf("byte %d of %d that a write has failed to write is %#x, neither what it was nor what it should have become", i, len(now), b)
			}
		}
		copy(old, now)
	}
	g.doubts = nil
	if bytes.Equal(g.bytes, is) {
		return nil
	}
	first, wrong := -1, 0
	for i := range is {
		if is[i] != g.bytes[i] {
			if wrong++; first < 0 {
				first = i
			}
		}
	}
	return fmt.Errorf("%d bytes of the memory are not what was written, the first at %d: %#x instead of %#x", wrong, first, is[first], g.bytes[first])
}

// setback is a transfer that failed.
type setback struct {
	what  string
	err   error
	began time.Time
	took  time.Duration
}

// work are the workers on one ground, until each has failed or all have been told to stop.
type work struct {
	ground *ground
	stop   context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	count    int
	doubts   []doubt
	setbacks []setback
	wrong    error // what is not as it should be
}

// limits of one transfer: the deadline it is given, and how much later it may return, besides what the machine
// is late with everything.
type limits struct {
	deadline, grace time.Duration
	lag             *lag
}

// lag measures how late the machine is: how much later than it should a goroutine wakes up that does nothing else.
type lag struct {
	mu   sync.Mutex
	lost []struct {
		until time.Time
		late  time.Duration
	}
}

// measure goes on until ctx ends.
func (l *lag) measure(ctx context.Context) {
	const nap, usual = 10 * time.Millisecond, 20 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		time.Sleep(nap)
		if late := time.Since(began) - nap; late > usual {
			l.mu.Lock()
			l.lost = append(l.lost, struct {
				until time.Time
				late  time.Duration
			}{time.Now(), late})
			l.mu.Unlock()
		}
	}
}

// since returns how much time the machine has lost since an instant.
func (l *lag) since(began time.Time) (lost time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.lost) - 1; i >= 0 && l.lost[i].until.After(began); i-- {
		lost += l.lost[i].late
	}
	return lost
}

const poison = 0xA5

// carry has workers write to and read from their stripes.
func (g *ground) carry(ctx context.Context, c *segment.Carrier, l limits, seed uint64, kept *keepsakes) *work {
	w := &work{ground: g}
	running, stop := context.WithCancel(ctx)
	w.stop = stop
	for n := range stripes {
		w.wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			for running.Err() == nil {
				if !w.step(ctx, c, l, n, r, kept) {
					return
				}
			}
		})
	}
	return w
}

// step is one transfer; false when it was the last one.
func (w *work) step(ctx context.Context, c *segment.Carrier, l limits, n int, r *rand.Rand, kept *keepsakes) bool {
	sizes := [...]int{1, 17, 4096, 64<<10 + 1, 1 << 20, stripeBytes/2 + r.IntN(stripeBytes/2)}
	size := sizes[r.IntN(len(sizes))]
	at := n*stripeBytes + r.IntN(stripeBytes-size+1)
	b, release := make([]byte, size+2*guard), func() {}
	registered := r.IntN(2) == 0
	if registered { // memory that the carrier knows
		var err error
		if b, release, err = c.Buffer(size + 2*guard); err != nil {
			w.fail(fmt.Errorf("a buffer of %d bytes: %w", size, err))
			return false
		}
	}
	for i := range b {
		b[i] = poison
	}
	data, place := b[guard:guard+size], segment.Place{Owner: w.ground.owner, Address: w.ground.address + uint64(at)}
	writes := r.IntN(2) == 0
	var wrote []byte
	if writes {
		fast := rand.NewChaCha8([32]byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())})
		fast.Read(data)
		wrote = bytes.Clone(data)
	}
	limited, cancel := context.WithTimeout(ctx, l.deadline)
	began := time.Now()
	var err error
	if writes {
		err = c.Write(limited, place, data)
	} else {
		err = c.Read(limited, place, data)
	}
	took := time.Since(began)
	cancel()
	must := w.ground.bytes[at : at+size]
	switch {
	case !intact(b[:guard]) || !intact(b[guard+size:]):
		w.fail(fmt.Errorf("a transfer of %d bytes has touched what lies beside them", size))
	case err == nil && writes && !bytes.Equal(data, wrote):
		w.fail(errors.New("a write has changed what was written from"))
	case err == nil && !writes && !bytes.Equal(data, must):
		w.fail(fmt.Errorf("%d bytes are not read as they were written", size))
	case err == nil:
		if writes {
			copy(must, data)
		}
		release()
		w.mu.Lock()
		w.count++
		w.mu.Unlock()
		return true
	default:
		what := fmt.Sprintf("reading %d bytes at %d", size, at)
		if writes {
			what = fmt.Sprintf("writing %d bytes at %d", size, at)
		}
		w.mu.Lock()
		if writes {
			w.doubts = append(w.doubts, doubt{at, wrote})
		}
		w.setbacks = append(w.setbacks, setback{what, err, began, took})
		w.mu.Unlock()
		if lost := l.lag.since(began); took > l.deadline+l.grace+lost {
			w.fail(fmt.Errorf("%s came back after %v, %v later than its deadline, while the machine was late by %v: %w", what, took, took-l.deadline, lost, err))
		}
	}
	// What has come back is the caller's again: nothing may be taken from it or put there any more.
	for i := range b {
		b[i] = poison
	}
	if registered {
		release()
	} else {
		kept.add(b)
	}
	return false
}

// guard is how many bytes beside a transfer are watched.
const guard = 64

func intact(b []byte) bool {
	for _, c := range b {
		if c != poison {
			return false
		}
	}
	return true
}

func (w *work) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wrong == nil {
		w.wrong = err
	}
}

// done returns how many transfers have succeeded.
func (w *work) done() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// end waits for all workers, whether they have failed or are told to stop now, and hands their doubts to the
// ground.
func (w *work) end() ([]setback, error) {
	w.wg.Wait()
	w.stop()
	w.ground.doubts = append(w.ground.doubts, w.doubts...)
	return w.setbacks, w.wrong
}

// keepsakes are buffers of transfers that have failed. They are poisoned, and have to stay so.
type keepsakes struct {
	mu  sync.Mutex
	all [][]byte
}

func (k *keepsakes) add(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, b)
}

// check looks whether anything was written to them, and forgets them.
func (k *keepsakes) check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.all {
		if !intact(b) {
			return fmt.Errorf("a buffer of %d bytes was written to after its transfer had failed", len(b))
		}
	}
	k.all = nil
	return nil
}

package rpc

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// workers handle the requests that would hold an event loop up. Goroutines come and go with
// the work: there are none while there is nothing to do.
type workers struct {
	server *Server
	lanes  [2]struct {
		mu    sync.Mutex // guards queue and busy
		queue []*stream
		busy  int // goroutines
	}
}

// scratches are buffers that answers are made in.
var scratches = sync.Pool{New: func() any { return new(block) }}

// keepScratch is the largest of them that is kept.
const keepScratch = 8 << 20

// submit has the request at the front of c handled. The caller owns c and no longer does.
func (w *workers) submit(c *stream) {
	h := parseHead(c.in.bytes())
	lane := &w.lanes[0]
	if w.server.routes[h.function].slow {
		lane = &w.lanes[1]
	}
	lane.mu.Lock()
	lane.queue = append(lane.queue, c)
	more := lane.busy < w.server.opts.Workers
	if more {
		lane.busy++
	}
	lane.mu.Unlock()
	if !more {
		return
	}
	w.server.wait.Go(func() {
		scratch := scratches.Get().(*block)
		for {
			lane.mu.Lock()
			if len(lane.queue) == 0 {
				lane.busy--
				lane.queue = nil
				lane.mu.Unlock()
				break
			}
			c := lane.queue[0]
			lane.queue[0] = nil
			lane.queue = lane.queue[1:]
			lane.mu.Unlock()
			c.work(scratch)
		}
		if cap(scratch.b) <= keepScratch {
			scratches.Put(scratch)
		}
	})
}

// work handles one request, writes what the socket takes of its answer, and gives c back to
// its loop.
func (c *stream) work(scratch *block) {
	c.session.out = scratch.b
	n, out := c.session.first(c.in.bytes())
	scratch.b, c.session.out = c.session.out, nil
	c.parked = false
	c.in.consume(n)
	c.fresh = c.in.pending() > 0
	l := c.loop
	l.write(c, out)
	l.post(c)
}

// yield lets the loops run: those that wait for one of the scheduler's places, and those whose
// thread the kernel keeps waiting for this one's time slice to end, which takes milliseconds.
func yield() {
	runtime.Gosched()
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}

package rpc

import (
	"errors"
	"sync"

	"github.com/mooncake-go/mooncake-master/transport/structpack"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// Call is what a handler can know about a request beyond its arguments. It is good only
// until the handler returns.
type Call struct {
	peer string
	form structpack.Form
	long bool // known to take long
}

// Peer returns the address of the client, "host:port". The string may be kept.
func (c *Call) Peer() string { return c.peer }

// Compat reports whether the request carried a total length, as only clients from 0.3.14 on
// send it, in calls whose arguments have compatible fields.
func (c *Call) Compat() bool { return c.form.Compat }

// Pause lets others have the processor. A handler should call it about every 50 µs when a
// request of its kind can take much longer than that; in a short request it does nothing. No
// lock may be held.
func (c *Call) Pause() {
	if c.long {
		yield()
	}
}

// Yield lets others have the processor, the event loops among them. No lock may be held.
func Yield() { yield() }

// Trait is something that a server should know about a call before it handles one.
type Trait int

// Slow says that a request can take long however short it is: its time follows what the
// master stores, or a pattern. An event loop leaves it to a worker.
const Slow Trait = 1

// lane is where an event loop has a request handled.
type lane int

// The lanes. Long and slow requests have workers of their own, so that a pattern that takes its
// time does not hold batches up.
const (
	laneInline lane = iota // by the loop itself
	laneBulk               // requests with a long body
	laneSlow               // calls with the trait Slow
)

// route is one registered call. serve handles the request in body and appends the whole
// reply to out; an error means that body is not the call's arguments, with nothing appended.
type route struct {
	row     *wire.Row
	slow    bool
	serve   func(s *session, seq uint32, body, out []byte) ([]byte, error)
	tallies [stripes]tally
}

// lane says who handles a request whose body has so many bytes.
func (rt *route) lane(body uint32, limit int) lane {
	switch {
	case rt.slow:
		return laneSlow
	case body >= uint32(limit):
		return laneBulk
	}
	return laneInline
}

// recycleLimit is the size of a body or reply above which the objects it was decoded to or
// encoded from are not used again. What is kept is given up after two garbage collections
// without use, so that it can be generous: what a batch of 50,000 keys leaves behind otherwise
// has the collector run all the time.
const recycleLimit = 8 << 20

func newRoute[Req, Resp any](r *wire.RPC[Req, Resp], h func(*Call, *Req, *Resp) error) *route {
	type exchange struct {
		req  Req
		resp Resp
	}
	pool := sync.Pool{New: func() any { return new(exchange) }}
	itemized := r.Itemized()
	rt := &route{row: r.Row()}
	hasBody := rt.row.Requests[0].Literal != nil
	countCompat := rt.row.RequestCompat
	rt.serve = func(s *session, seq uint32, body, out []byte) ([]byte, error) {
		x := pool.Get().(*exchange)
		form, err := r.DecodeRequest(body, &x.req)
		if err != nil {
			pool.Put(x)
			return out, err
		}
		t := &rt.tallies[s.stripe]
		if countCompat && form.Compat {
			t.release0314.Add(1)
		}
		s.call.form = form
		start := len(out)
		out = appendResponseHead(out, 0, seq)
		text, failed := s.guard(rt, func() error {
			if err := h(&s.call, &x.req, &x.resp); err != nil {
				return err
			}
			items, bad := r.Tally(&x.req, &x.resp)
			out = r.AppendResponse(out, &x.resp, structpack.Form{Literal: form.Literal || !hasBody, Compat: true})
			t.count(itemized, items, bad)
			return nil
		})
		if failed {
			// x may be in any state; leave it to the garbage collector.
			t.count(false, 1, 1)
			return appendError(out[:start], CodeHandlerFailed, seq, text), nil
		}
		size := len(out) - start
		if uint64(size-responseHeadLen) > s.server.maxReply {
			return appendError(out[:start], CodeTooLarge, seq, textTooLarge), nil
		}
		if size <= recycleLimit && len(body) <= recycleLimit {
			r.ResetResponse(&x.resp)
			pool.Put(x)
		}
		return finishResponse(out, start), nil
	}
	return rt
}

// reasonOf turns an error of the codec into the reason that is counted.
func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, structpack.ErrHash):
		return ReasonWrongHash
	case errors.Is(err, structpack.ErrLiteral):
		return ReasonWrongLiteral
	}
	return ReasonBadBody
}

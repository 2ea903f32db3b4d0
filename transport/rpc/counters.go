package rpc

import (
	"sync/atomic"
)

// Counters are the outcomes of one call since the server was made.
type Counters struct {
	// Requests is how many requests were handled.
	Requests uint64
	// Failures is how many of them failed: a single result that holds an error, or a batch
	// in which every item does. Empty is how many batches had no items; they are not among
	// the failures.
	Failures, Empty uint64
	// PartialSuccesses is how many batches failed for some items but not all.
	PartialSuccesses uint64
	// Items is how many items all batches had, FailedItems how many of those failed.
	// Both stay 0 for calls that are not batches.
	Items, FailedItems uint64
	// Release0314 is how many requests carried a total length, which only clients from
	// 0.3.14 on send, and only in calls whose arguments have compatible fields.
	Release0314 uint64
}

// stripes is how many copies of each counter there are. Connections are spread over them, so
// that cores seldom share a cache line; reading adds them up.
const stripes = 8

// tally is one stripe of one call's counters, alone on its cache lines.
type tally struct {
	requests, failures, empty, partial, items, failedItems, release0314 atomic.Uint64
	_                                                                   [128 - 7*8]byte
}

// count books the outcome of one handled request.
func (t *tally) count(itemized bool, items, failed int) {
	t.requests.Add(1)
	if !itemized {
		if failed != 0 {
			t.failures.Add(1)
		}
		return
	}
	if items == 0 {
		t.empty.Add(1)
		return
	}
	t.items.Add(uint64(items))
	if failed == 0 {
		return
	}
	t.failedItems.Add(uint64(failed))
	if failed == items {
		t.failures.Add(1)
	} else {
		t.partial.Add(1)
	}
}

func sum(all *[stripes]tally) Counters {
	var c Counters
	for i := range all {
		t := &all[i]
		c.Requests += t.requests.Load()
		c.Failures += t.failures.Load()
		c.Empty += t.empty.Load()
		c.PartialSuccesses += t.partial.Load()
		c.Items += t.items.Load()
		c.FailedItems += t.failedItems.Load()
		c.Release0314 += t.release0314.Load()
	}
	return c
}

// Reason says why a frame was refused.
type Reason int

// The reasons. After the first four the connection stays open; the others close it without
// an answer.
const (
	ReasonUnknownFunction Reason = iota // no handler has the function id
	ReasonWrongHash                     // the body is of another type
	ReasonWrongLiteral                  // the body says it is of another type
	ReasonBadBody                       // the body ends early or holds nonsense
	ReasonTooLarge                      // more bytes announced than the server takes
	ReasonBadMagic                      // the first byte is not 21
	ReasonBadVersion                    // the protocol version is above 0
	ReasonBadSerializer                 // the body is not struct_pack
	ReasonCutFrame                      // the peer left in the middle of a frame
	reasonCount
)

var reasonNames = [reasonCount]string{
	"unknown_function", "wrong_hash", "wrong_literal", "bad_body", "too_large",
	"bad_magic", "bad_version", "bad_serializer", "cut_frame",
}

// String returns the reason as a metric label.
func (r Reason) String() string { return reasonNames[r] }

// Stats are counts of the server itself.
type Stats struct {
	// Accepted is how many connections were accepted, Open how many of them are open.
	Accepted uint64
	Open     int64
	// Refused counts refused frames by Reason.String; every reason is present.
	Refused map[string]uint64
	// Panics is how many requests ended in a panic of their handler.
	Panics uint64
	// Loops is how many event loops run.
	Loops int
	// Reads and Writes are how many system calls event loops have made to read and to write,
	// those in vain included: one of each per request, or per bunch of requests.
	Reads, Writes uint64
	// BytesRead and BytesWritten count whole connections, heads included.
	BytesRead, BytesWritten uint64
}

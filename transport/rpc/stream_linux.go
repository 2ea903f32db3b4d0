package rpc

// stream is one connection of an event loop. Its loop owns it, but for the time in which busy
// is set: then a worker does, except for the marks readable and ended.
type stream struct {
	fd      int
	loop    *loop
	session session

	in     held   // received and not handled
	out    *block // answers that the peer does not take yet, or nil
	unsent []byte // the part of out that is left

	fresh    bool // in may hold a whole request
	readable bool // the socket may have bytes
	ended    bool // the peer sends no more than what lies in the socket
	doomed   bool // close once everything is written
	parked   bool // the next request in in is for a worker
	busy     bool // a worker has it
	leaving  bool // the server shuts down and has told the peer that it says no more
	queued   bool // in loop.later
	active   bool // had requests since the loop last looked at its load
	gone     bool // closed

	queue      *queue // in which it waits for a deadline, or nil
	prev, next *stream
	since      int64 // when that wait began
}

// keep remembers a copy of the answers that the socket did not take.
func (c *stream) keep(rest []byte) {
	c.out = borrow(len(rest))
	c.unsent = c.out.b[:copy(c.out.b, rest)]
}

// drop forgets what cannot be handled or sent any more.
func (c *stream) drop() {
	c.in.giveBack()
	c.out.giveBack()
	c.in, c.out, c.unsent, c.fresh, c.parked = held{}, nil, nil, false, false
}

// queue holds the streams that wait for the same thing, the longest first. A stream is in at
// most one.
type queue struct{ first, last *stream }

// push appends c, which leaves the queue that it is in.
func (q *queue) push(c *stream, now int64) {
	c.since = now
	if c.queue == q && q.last == c {
		return
	}
	c.unqueue()
	c.queue, c.prev = q, q.last
	if q.last != nil {
		q.last.next = c
	} else {
		q.first = c
	}
	q.last = c
}

// unqueue takes c out of the queue that it is in, if any.
func (c *stream) unqueue() {
	q := c.queue
	if q == nil {
		return
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		q.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		q.last = c.prev
	}
	c.queue, c.prev, c.next = nil, nil, nil
}

package rpc

import "errors"

// turnReads is how many full reads a connection gets before others have their turn.
const turnReads = 2

// serve does for c what can be done without waiting.
func (l *loop) serve(c *stream) {
	if c.busy {
		return
	}
	for reads := 0; ; {
		switch {
		case len(c.unsent) > 0:
			if !l.flush(c) {
				return
			}
		case c.doomed:
			l.close(c)
			return
		case c.parked:
			c.unqueue()
			c.busy = true
			l.server.workers.submit(c)
			return
		case c.fresh:
			b := c.in.bytes()
			c.in.consume(l.answer(c, b))
		case l.server.closing.Load() && !c.leaving:
			l.leave(c)
		case !c.readable:
			return
		case reads == turnReads:
			if !c.queued {
				c.queued = true
				l.later = append(l.later, c)
			}
			return
		default:
			reads++
			l.read(c)
		}
	}
}

// read reads once and handles what has come.
func (l *loop) read(c *stream) {
	pending := c.in.pending()
	b := l.buf
	if pending > 0 {
		b = c.in.space()
		b = b[:min(len(b), loopBuffer)]
	}
	l.reads.Add(1)
	n, err := readSocket(c.fd, b)
	switch {
	case errors.Is(err, errAgain):
		c.readable = false
		return
	case err != nil || n == 0:
		if err == nil && pending > 0 {
			l.server.refuse(ReasonCutFrame, c.session.call.peer, "bytes", pending)
		}
		c.doomed = true
		return
	}
	// Less than there was room for means that the socket is empty, but for the mark of its
	// end, which is told together with the last bytes.
	c.readable = n == len(b) || c.ended
	l.bytesRead.Add(uint64(n))
	if c.leaving {
		return
	}
	c.active = true
	l.touch(c)
	if pending > 0 {
		c.in.w += n
		c.fresh = true
		return
	}
	if consumed := l.answer(c, b[:n]); consumed < n && !c.doomed {
		c.in.hold(b[consumed:n])
	}
}

// touch starts the wait for the next request anew.
func (l *loop) touch(c *stream) {
	if l.server.opts.IdleTimeout > 0 {
		l.idle.push(c, l.now)
	}
}

// answer handles the requests at the start of b and writes the answers. It returns how much
// of b is done with; the marks of c say what is to become of the rest.
func (l *loop) answer(c *stream, b []byte) (consumed int) {
	s := &c.session
	for {
		s.out = l.out
		n, out, err := s.process(b[consumed:])
		l.out, s.out = s.out, nil
		consumed += n
		if len(out) > 0 {
			l.write(c, out)
		}
		switch {
		case c.doomed:
			return consumed
		case errors.Is(err, errSlow):
			c.fresh, c.parked = false, true
			return consumed
		case err != nil:
			c.doomed = true
			return consumed
		case n == 0 || consumed == len(b):
			c.fresh = false
			return consumed
		case len(c.unsent) > 0:
			c.fresh = true
			return consumed
		}
	}
}

// write sends answers and remembers what the socket does not take.
func (l *loop) write(c *stream, out []byte) {
	l.writes.Add(1)
	n, err := writeSocket(c.fd, out)
	l.bytesWritten.Add(uint64(n))
	switch {
	case err != nil && !errors.Is(err, errAgain):
		c.doomed = true
	case n < len(out):
		c.keep(out[n:])
	}
}

// flush sends what is left of answers and reports whether that has come to an end.
func (l *loop) flush(c *stream) bool {
	for len(c.unsent) > 0 {
		l.writes.Add(1)
		n, err := writeSocket(c.fd, c.unsent)
		l.bytesWritten.Add(uint64(n))
		c.unsent = c.unsent[n:]
		switch {
		case errors.Is(err, errAgain):
			if l.server.opts.WriteTimeout <= 0 {
				c.unqueue()
			} else if c.queue != &l.stalled || n > 0 {
				l.stalled.push(c, l.now)
			}
			return false
		case err != nil:
			c.unsent = nil
			c.doomed = true
		}
	}
	c.out.giveBack()
	c.out = nil
	c.unqueue()
	l.touch(c)
	return true
}

// leave tells the peer that nothing more is said, and goes on reading so that the answers
// written last arrive: closing while requests lie unread would make the kernel reset the
// connection, and a reset may overtake answers.
func (l *loop) leave(c *stream) {
	c.leaving, c.readable = true, true
	c.unqueue()
	c.drop()
	c.since = l.now
	if closeWrite(c.fd) != nil {
		c.doomed = true
	}
}

package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
)

// session is what one connection remembers between reads; it knows nothing of sockets.
type session struct {
	server *Server
	call   Call
	stripe int
	out    []byte
	sort   bool // have first called for what takes long
}

// flushAt is how many bytes of answers may gather before they are to be written, even though
// more requests are waiting.
const flushAt = 256 << 10

// keepOut is the largest output buffer that is kept between writes.
const keepOut = 64 << 10

// errSlow is returned by process when the next request is complete and takes so long that
// neither answers nor other connections should wait for it.
var errSlow = errors.New("a request that takes long")

// errClose is returned by process when the connection is to be closed, without an answer to
// the frame at hand.
var errClose = errors.New("connection closed for a frame that is not of this protocol")

func newSession(s *Server, peer string, number uint64) *session {
	return &session{server: s, call: Call{peer: peer}, stripe: int(number % stripes)}
}

// process handles the complete requests at the start of buf, in order. consumed is how many
// bytes they took; out, good until the next call, is the answers. It stops where a frame is
// incomplete, and also when many answers have gathered: the caller writes them and, if
// something was consumed, calls again with the rest. After errClose the caller writes out
// and closes. After errSlow, which only a session that sorts returns, the caller writes out
// and has first called.
func (s *session) process(buf []byte) (consumed int, out []byte, err error) {
	if cap(s.out) > keepOut {
		s.out = nil
	}
	s.out = s.out[:0]
	for len(s.out) < flushAt && consumed < len(buf) {
		h, size, err := s.front(buf[consumed:])
		if err != nil || size == 0 {
			return consumed, s.out, err
		}
		rt := s.server.routes[h.function]
		if s.sort && rt != nil && rt.lane(h.body, s.server.opts.SlowBody) != laneInline {
			return consumed, s.out, errSlow
		}
		s.request(&h, rt, buf[consumed:consumed+size])
		consumed += size
	}
	return consumed, s.out, nil
}

// first handles the request at the start of buf, which is complete and takes long.
func (s *session) first(buf []byte) (consumed int, out []byte) {
	h, size, _ := s.front(buf) // process has checked it
	s.out = s.out[:0]
	s.call.long = true
	s.request(&h, s.server.routes[h.function], buf[:size])
	s.call.long = false
	return size, s.out
}

// front looks at the request at the start of b, which is not empty. size is 0 while it is
// incomplete.
func (s *session) front(b []byte) (h head, size int, err error) {
	if err := s.check(b); err != nil {
		return h, 0, err
	}
	if len(b) < requestHeadLen {
		return h, 0, nil
	}
	h = parseHead(b)
	n := h.payload()
	if uint64(len(b)-requestHeadLen) < n {
		return h, 0, nil
	}
	return h, requestHeadLen + int(n), nil
}

// check refuses what is no frame of this protocol as soon as enough of it is there to tell.
func (s *session) check(b []byte) error {
	if b[0] != magic {
		s.server.refuse(ReasonBadMagic, s.call.peer, "first_byte", b[0])
		return errClose
	}
	if len(b) < requestHeadLen {
		return nil
	}
	h := parseHead(b)
	switch {
	case h.version > 0:
		s.server.refuse(ReasonBadVersion, s.call.peer, s.describe(&h)...)
	case h.serialize != 0:
		s.server.refuse(ReasonBadSerializer, s.call.peer, s.describe(&h)...)
	case h.payload() > s.server.opts.MaxFrame:
		s.server.refuse(ReasonTooLarge, s.call.peer, append(s.describe(&h), "limit", s.server.opts.MaxFrame)...)
	default:
		return nil
	}
	return errClose
}

// request answers one complete request; rt is nil when its call has no handler.
func (s *session) request(h *head, rt *route, frame []byte) {
	if rt == nil {
		s.server.refuse(ReasonUnknownFunction, s.call.peer, s.describe(h)...)
		s.out = appendError(s.out, CodeNotRegistered, h.seq, textNotRegistered)
		return
	}
	end := requestHeadLen + int(h.body)
	body := frame[requestHeadLen:end:end]
	out, err := rt.serve(s, h.seq, body, s.out)
	s.out = out
	if err != nil {
		fields := append(s.describe(h), "rpc", rt.row.Name, "error", err)
		if len(body) >= 4 {
			fields = append(fields,
				"hash", fmt.Sprintf("0x%08x", binary.LittleEndian.Uint32(body)&^1),
				"want_hash", fmt.Sprintf("0x%08x", rt.row.Requests[0].Hash))
		}
		s.server.refuse(reasonOf(err), s.call.peer, fields...)
		s.out = appendError(s.out, CodeInvalidArgument, h.seq, textInvalidArgument)
	}
	if s.server.opts.Poison {
		for i := range body {
			body[i] = 0xdb
		}
	}
}

// describe returns the fields of a head for a log line.
func (s *session) describe(h *head) []any {
	return []any{
		"version", h.version, "serialize_type", h.serialize, "msg_type", h.kind, "seq", h.seq,
		"function_id", fmt.Sprintf("0x%08x", h.function), "body_len", h.body, "attachment_len", h.attachment,
	}
}

// guard runs f and turns its error or panic into the text of an error reply. Either is
// logged.
func (s *session) guard(rt *route, f func() error) (text string, failed bool) {
	defer func() {
		if p := recover(); p != nil {
			s.server.panics.Add(1)
			text, failed = textHandlerFailed, true
			s.server.logFailure("handler panicked", "rpc", rt.row.Name, "peer", s.call.peer,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if err := f(); err != nil {
		s.server.logFailure("handler failed", "rpc", rt.row.Name, "peer", s.call.peer, "error", err)
		return err.Error(), true
	}
	return "", false
}

// logFailure logs a failing handler, unless there were many of late.
func (s *Server) logFailure(message string, fields ...any) {
	if suppressed, ok := s.limits.allow(int(reasonCount)); ok {
		s.log.Error(message, append(fields, "suppressed", suppressed)...)
	}
}

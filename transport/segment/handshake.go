package segment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 5 * time.Second // for one message and its answer, as a server allows them
	answerTimeout    = 60 * time.Second
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// call sends one message to a handshake port and returns the answer.
func call(ctx context.Context, address string, kind byte, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(past) })()
	if err := writeMessage(conn, kind, body); err != nil {
		return nil, err
	}
	got, answer, err := readMessage(conn)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("handshake with %s: it was closed without an answer", address)
	case err != nil:
		return nil, fmt.Errorf("handshake with %s: %w", address, err)
	case got != kind:
		return nil, fmt.Errorf("handshake with %s: a message of type %d was answered with one of type %d", address, kind, got)
	}
	return answer, nil
}

// Probe asks whether somebody answers at a handshake address.
func Probe(ctx context.Context, address string) error {
	_, err := call(ctx, address, messageProbe, []byte("{}"))
	return err
}

// handshakes serves the handshake port, many connections at a time, each within handshakeTimeout.
type handshakes struct {
	listener net.Listener
	now      func() time.Time
	// descriptor is the answer to messageMetadata; nil means that a store has it.
	descriptor func() []byte
	// connect answers messageConnection.
	connect func(body []byte) []byte

	wg    sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]bool
	done  bool
}

// maxHandshakes bounds how many connections are served at a time; more wait.
const maxHandshakes = 256

func (h *handshakes) serve() {
	defer h.wg.Done()
	slots := make(chan struct{}, maxHandshakes)
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors, most likely
			continue
		}
		if !h.enter(conn) {
			conn.Close()
			return
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; h.leave(conn) }()
			h.answer(conn)
		}()
	}
}

func (h *handshakes) enter(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done {
		return false
	}
	h.wg.Add(1)
	h.conns[conn] = true
	return true
}

// begin gives a connection its time, unless the service ends.
func (h *handshakes) begin(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.done {
		conn.SetDeadline(h.now().Add(handshakeTimeout))
	}
}

func (h *handshakes) leave(conn net.Conn) {
	conn.Close()
	h.mu.Lock()
	delete(h.conns, conn)
	h.mu.Unlock()
	h.wg.Done()
}

// answer serves one connection: one message, one answer, and the wait for the other side's close. What
// can't be read is not answered.
func (h *handshakes) answer(conn net.Conn) {
	h.begin(conn)
	kind, body, err := readMessage(conn)
	if err != nil {
		return
	}
	var reply []byte
	switch kind {
	case messageMetadata:
		reply = []byte("null")
		if h.descriptor != nil {
			reply = h.descriptor()
		}
	case messageNotify:
		reply, _ = json.Marshal(map[string]string{"name": "", "notify_msg": "success"})
	case messageProbe:
		reply = []byte(`{"status":"success"}`)
	default:
		reply = h.connect(body)
	}
	if writeMessage(conn, kind, reply) != nil {
		return
	}
	if c, ok := conn.(*net.TCPConn); ok {
		c.CloseWrite()
	}
	io.Copy(io.Discard, conn)
}

// stop ends the service and waits for it.
func (h *handshakes) stop() {
	h.listener.Close()
	h.mu.Lock()
	h.done = true
	for c := range h.conns {
		c.SetDeadline(past)
	}
	h.mu.Unlock()
	h.wg.Wait()
}

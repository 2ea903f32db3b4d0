package segment

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The messages of the handshake port.
const (
	messageConnection byte = 0 // two sides of an RDMA connection tell each other their queue pairs
	messageMetadata   byte = 1 // the answer is the receiver's descriptor
	messageNotify     byte = 2
	messageProbe      byte = 3

	messageUntyped = 0xff // an old form without type, which means messageConnection
)

// maxMessage is how long a message of the handshake port may be, in bytes.
const maxMessage = 1 << 20

// ErrMessage is the class of errors about messages that can't be read.
var ErrMessage = errors.New("unreadable handshake message")

// readMessage reads one message and tells its type.
func readMessage(r io.Reader) (kind byte, body []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n == 0 || n > maxMessage {
		return 0, nil, fmt.Errorf("%w: it is %d bytes long, at most %d are taken", ErrMessage, n, maxMessage)
	}
	body = make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, fmt.Errorf("%w: it ends early: %w", ErrMessage, err)
	}
	if body[0] > messageProbe {
		kind = messageUntyped
	} else {
		kind, body = body[0], body[1:]
	}
	if !json.Valid(body) {
		return 0, nil, fmt.Errorf("%w: it is not JSON", ErrMessage)
	}
	return kind, body, nil
}

// writeMessage writes one message.
func writeMessage(w io.Writer, kind byte, body []byte) error {
	n := len(body)
	if kind != messageUntyped {
		n++
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 9+len(body)), uint64(n))
	if kind != messageUntyped {
		b = append(b, kind)
	}
	_, err := w.Write(append(b, body...))
	return err
}

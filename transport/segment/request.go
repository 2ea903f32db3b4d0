package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A request to a data port: what to do with so many bytes at an address of its owner.
type request struct {
	size, addr uint64
	opcode     byte
}

const (
	opRead     byte = 0
	opWrite    byte = 1
	opAnswered byte = 0x80 // framing of version 2: a status is sent

	requestBytes = 24 // 17 of them mean something
	statusBytes  = 8
	statusMagic  = 0x4D435456
)

// The codes of a status.
const (
	statusDone     uint32 = 0
	statusRejected uint32 = 1
)

func (r request) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.size)
	b = binary.LittleEndian.AppendUint64(b, r.addr)
	return append(b, r.opcode, 0, 0, 0, 0, 0, 0, 0)
}

func parseRequest(b *[requestBytes]byte) request {
	return request{binary.LittleEndian.Uint64(b[0:]), binary.LittleEndian.Uint64(b[8:]), b[16]}
}

func (r request) answered() bool { return r.opcode&opAnswered != 0 }

// writes reports whether the request writes; anything that isn't a write reads.
func (r request) writes() bool { return r.opcode&^opAnswered == opWrite }

func appendStatus(b []byte, code uint32) []byte {
	return binary.LittleEndian.AppendUint64(b, statusMagic<<32|uint64(code))
}

// ErrRejected is returned when an owner has no memory at an address.
var ErrRejected = errors.New("the owner has no such memory")

// parseStatus says what a status means.
func parseStatus(b [statusBytes]byte) error {
	v := binary.LittleEndian.Uint64(b[:])
	switch {
	case v>>32 != statusMagic:
		return fmt.Errorf("% x is no status", b)
	case uint32(v) == statusDone:
		return nil
	case uint32(v) == statusRejected:
		return ErrRejected
	}
	return fmt.Errorf("the owner answers with status %d", uint32(v))
}

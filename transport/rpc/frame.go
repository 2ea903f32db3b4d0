package rpc

import (
	"encoding/binary"

	"github.com/mooncake-go/mooncake-master/transport/structpack"
)

// The fixed parts of a frame.
const (
	magic           = 21
	requestHeadLen  = 20
	responseHeadLen = 16
)

// Error codes of the framing itself. Failures of a call's business are never among them; they
// are in its result.
const (
	// CodeInvalidArgument answers a body that is not the call's arguments.
	CodeInvalidArgument uint8 = 4
	// CodeHandlerFailed answers when the handler returned an error or panicked.
	CodeHandlerFailed uint8 = 10
	// CodeNotRegistered answers a function id without handler.
	CodeNotRegistered uint8 = 11
	// CodeTooLarge answers when the result does not fit a frame.
	CodeTooLarge uint8 = 14
	// codeExtended says that the body is a pair of the real code, 16 bits, and the text.
	codeExtended uint8 = 255
)

// The texts that go with the codes; clients log them.
const (
	textInvalidArgument = "invalid rpc arg"
	textHandlerFailed   = "unknown rpc function exception"
	textNotRegistered   = "the rpc function not registered"
	textTooLarge        = "message too large"
)

// head is the head of a request.
type head struct {
	magic, version, serialize, kind uint8
	seq, function                   uint32
	body, attachment                uint32
}

func parseHead(b []byte) head {
	_ = b[requestHeadLen-1]
	return head{
		magic: b[0], version: b[1], serialize: b[2], kind: b[3],
		seq:        binary.LittleEndian.Uint32(b[4:]),
		function:   binary.LittleEndian.Uint32(b[8:]),
		body:       binary.LittleEndian.Uint32(b[12:]),
		attachment: binary.LittleEndian.Uint32(b[16:]),
	}
}

// payload is how many bytes follow the head.
func (h *head) payload() uint64 { return uint64(h.body) + uint64(h.attachment) }

func appendRequestHead(dst []byte, seq, function uint32) []byte {
	dst = append(dst, magic, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, seq)
	dst = binary.LittleEndian.AppendUint32(dst, function)
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
}

// appendResponseHead appends the head of a reply whose body is still to come;
// finishResponse fills in the length.
func appendResponseHead(dst []byte, code uint8, seq uint32) []byte {
	dst = append(dst, magic, 0, code, 0)
	dst = binary.LittleEndian.AppendUint32(dst, seq)
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
}

func finishResponse(dst []byte, start int) []byte {
	binary.LittleEndian.PutUint32(dst[start+8:], uint32(len(dst)-start-responseHeadLen))
	return dst
}

// Bodies of error replies are a bare string, or a pair when the code does not fit a byte.
var errorText = structpack.For[string]()

type extendedError struct {
	Code uint16
	Text string
}

var extendedErrorText = structpack.For[extendedError]()

// appendError appends a whole error reply. Its body carries the literal, as those of the
// released master do.
func appendError(dst []byte, code uint8, seq uint32, text string) []byte {
	start := len(dst)
	dst = appendResponseHead(dst, code, seq)
	dst = errorText.Append(dst, &text, structpack.Form{Literal: true})
	return finishResponse(dst, start)
}

package task

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Payload is what a task is to do, a *CopyPayload or a *MovePayload. It isn't changed once it is in a queue.
type Payload interface {
	// JSON returns the payload as clients read it.
	JSON() string
}

// CopyPayload tells a client what to copy. The lease and epoch are of a copy that the master
// wants itself; zero otherwise. The order of the fields is that of the wire.
type CopyPayload struct {
	TenantID  string   `json:"tenant_id"`
	Key       string   `json:"key"`
	Source    string   `json:"source"` // name of a segment
	Targets   []string `json:"targets"`
	LeaseHigh uint64   `json:"dynamic_replication_lease_id_high"`
	LeaseLow  uint64   `json:"dynamic_replication_lease_id_low"`
	Epoch     uint64   `json:"dynamic_replication_version_epoch"`
}

// MovePayload tells a client what to move.
type MovePayload struct {
	TenantID string `json:"tenant_id"`
	Key      string `json:"key"`
	Source   string `json:"source"` // names of segments
	Target   string `json:"target"`
}

// JSON returns the payload as clients read it.
func (p *CopyPayload) JSON() string {
	b := field(nil, '{', "tenant_id", p.TenantID)
	b = field(b, ',', "key", p.Key)
	b = field(b, ',', "source", p.Source)
	b = append(b, `,"targets":[`...)
	for i, target := range p.Targets {
		if i > 0 {
			b = append(b, ',')
		}
		b = quoted(b, target)
	}
	return string(fmt.Appendf(b, `],"dynamic_replication_lease_id_high":%d,"dynamic_replication_lease_id_low":%d,"dynamic_replication_version_epoch":%d}`,
		p.LeaseHigh, p.LeaseLow, p.Epoch))
}

// JSON returns the payload as clients read it.
func (p *MovePayload) JSON() string {
	b := field(nil, '{', "tenant_id", p.TenantID)
	b = field(b, ',', "key", p.Key)
	b = field(b, ',', "source", p.Source)
	return string(append(field(b, ',', "target", p.Target), '}'))
}

func field(b []byte, before byte, name, value string) []byte {
	return quoted(append(quoted(append(b, before), name), ':'), value)
}

// quoted appends a string in quotes, as the original writes it: in ASCII. Bytes that are no UTF-8, which
// keys may have, stay as they are.
func quoted(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	unit := func(u uint16) { b = append(b, '\\', 'u', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15]) }
	b = append(b, '"')
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			b = append(b, s[0])
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' && strings.IndexByte("\b\f\n\r\t", byte(r)) >= 0:
			b = append(b, '\\', "bfnrt"[strings.IndexByte("\b\f\n\r\t", byte(r))])
		case r >= ' ' && r < utf8.RuneSelf:
			b = append(b, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			unit(uint16(high))
			unit(uint16(low))
		default:
			unit(uint16(r))
		}
		s = s[n:]
	}
	return append(b, '"')
}

package node

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mooncake-go/mooncake-master/core/task"
)

// Keys may be any bytes, and the master writes those that are no UTF-8 as they are. Readers of JSON put U+FFFD in their
// place, so they are read as this character, which is written in no other way, and the byte's number.
const (
	stray     = "\U0010ffff"
	strayJSON = `\uDBFF\uDFFF` // as the master writes it where it belongs to a name
)

// copyPayload reads what is to be copied.
func copyPayload(text string) (p task.CopyPayload, err error) {
	if err = decode(text, &p); err == nil {
		restore(&p.TenantID, &p.Key, &p.Source)
		for i := range p.Targets {
			restore(&p.Targets[i])
		}
	}
	return p, err
}

// movePayload reads what is to be moved.
func movePayload(text string) (p task.MovePayload, err error) {
	if err = decode(text, &p); err == nil {
		restore(&p.TenantID, &p.Key, &p.Source, &p.Target)
	}
	return p, err
}

func decode(text string, into any) error {
	b := []byte(strings.ReplaceAll(text, strayJSON, strayJSON+"00"))
	if !utf8.Valid(b) {
		var valid []byte
		for len(b) > 0 {
			r, n := utf8.DecodeRune(b)
			if r == utf8.RuneError && n == 1 {
				valid = fmt.Appendf(valid, "%s%02x", strayJSON, b[0])
			} else {
				valid = append(valid, b[:n]...)
			}
			b = b[n:]
		}
		b = valid
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("payload %q: %w", text, err)
	}
	return nil
}

// restore puts bytes back in the place of what decode has written for them.
func restore(names ...*string) {
	for _, name := range names {
		parts := strings.Split(*name, stray)
		for i, part := range parts[1:] {
			if len(part) < 2 {
				continue // not written by decode
			}
			b, err := strconv.ParseUint(part[:2], 16, 8)
			switch {
			case err != nil:
			case b == 0:
				parts[i+1] = stray + part[2:]
			default:
				parts[i+1] = string([]byte{byte(b)}) + part[2:]
			}
		}
		*name = strings.Join(parts, "")
	}
}

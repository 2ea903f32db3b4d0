package policydoc

import (
	"strconv"
	"strings"
)

// Error says why a document is refused.
type Error struct {
	// Line from 1 on which the trouble is, 0 when it is about the whole document.
	Line int
	// Column from 1, counted in characters; 0 when it is about the whole line.
	Column int
	// Tenant the trouble is about, empty when none.
	Tenant string
	// Message is the reason, without line and hint.
	Message string
	// Hint says what would be right; may be empty.
	Hint string
}

// Error reads "line 4: invalid quota for tenant 'a': unsupported quota unit 'GiB' (hint)".
func (e *Error) Error() string {
	s := located(e.Line, e.Message)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func located(line int, message string) string {
	if line <= 0 {
		return message
	}
	return "line " + strconv.Itoa(line) + ": " + message
}

// shown makes document text fit for one line of a message: control bytes are escaped, and it
// is cut at 100 bytes.
func shown(s string) string {
	if len(s) > 100 {
		s = strings.ToValidUTF8(s[:100], "") + "..."
	}
	q := strconv.Quote(s)
	q = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
	return strings.ReplaceAll(q, `\\`, `\`)
}

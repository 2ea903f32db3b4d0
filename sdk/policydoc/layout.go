package policydoc

import (
	"bytes"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// layout says where in a text the things are that an edit changes. Offsets are in bytes; -1
// means that the place is not known and that the text has to be written anew instead.
type layout struct {
	plain   bool    // read by readPlain
	block   bool    // tenants is a block list with at least one entry
	entries []entry // one per tenant, in the same order
	// colon is the offset after "tenants:".
	colon int
	// emptyStart and emptyEnd enclose "[]".
	emptyStart, emptyEnd int
}

// entry is the place of one tenant.
type entry struct {
	start, end           int // whole lines, from the one with the dash to the last with content
	dash, column         int // columns, from 0, of the dash and of the keys
	quotaStart, quotaEnd int // the quota with its quotes
}

// layout computes the places from the nodes of the YAML parser.
func (t *tree) layout(text []byte) *layout {
	lay := &layout{colon: -1, emptyStart: -1, emptyEnd: -1}
	lines := newLineTable(text)
	for _, e := range t.entries {
		place := entry{start: -1, end: -1, quotaStart: -1, quotaEnd: -1}
		place.quotaStart, place.quotaEnd = lines.scalar(e.quota)
		lay.entries = append(lay.entries, place)
	}
	if t.aliased || t.tenants.Anchor != "" {
		return lay
	}
	if at := lines.offset(t.tenantsKey); at >= 0 {
		for _, form := range []string{`tenants:`, `"tenants":`, `'tenants':`} {
			if bytes.HasPrefix(text[at:], []byte(form)) {
				lay.colon = at + len(form)
			}
		}
	}
	if t.tenants.Style&yaml.FlowStyle != 0 {
		if at := lines.offset(t.tenants); len(t.entries) == 0 && at >= 0 && text[at] == '[' {
			if end := at + 1 + leading(text[at+1:]); end < len(text) && text[end] == ']' {
				lay.emptyStart, lay.emptyEnd = at, end+1
			}
		}
		return lay
	}
	lay.block = len(t.entries) > 0
	dash := t.tenants.Column - 1
	for i, e := range t.entries {
		lay.entries[i].dash, lay.entries[i].column = dash, max(e.node.Column-1, dash+2)
		lay.entries[i].start, lay.entries[i].end = lines.item(e.node.Line, dash)
	}
	return lay
}

// lineTable knows where lines begin, by the YAML parser's notion of a line.
type lineTable struct {
	text   []byte
	starts []int
}

func newLineTable(text []byte) *lineTable {
	t := &lineTable{text: text, starts: []int{0}}
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		t.starts[0] = 3
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n', c == '\r' && (i+1 == len(text) || text[i+1] != '\n'):
			t.starts = append(t.starts, i+1)
		case c == 0xc2 && i+1 < len(text) && text[i+1] == 0x85:
			t.starts = append(t.starts, i+2)
		case c == 0xe2 && i+2 < len(text) && text[i+1] == 0x80 && (text[i+2] == 0xa8 || text[i+2] == 0xa9):
			t.starts = append(t.starts, i+3)
		}
	}
	return t
}

// offset converts the position of a node; -1 when it has none in this text.
func (t *lineTable) offset(n *yaml.Node) int {
	if n == nil || n.Line < 1 || n.Line > len(t.starts) {
		return -1
	}
	at := t.starts[n.Line-1]
	for col := 1; col < n.Column; col++ {
		if at >= len(t.text) {
			return -1
		}
		_, size := utf8.DecodeRune(t.text[at:])
		at += size
	}
	if at >= len(t.text) {
		return -1
	}
	return at
}

// scalar finds the bytes of a scalar that stands on one line, without anchor or tag.
func (t *lineTable) scalar(n *yaml.Node) (start, end int) {
	at := t.offset(n)
	if at < 0 || n.Kind != yaml.ScalarNode || n.Anchor != "" {
		return -1, -1
	}
	switch n.Style {
	case yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle:
		quoted := `"` + n.Value + `"`
		if n.Style == yaml.SingleQuotedStyle {
			quoted = `'` + n.Value + `'`
		}
		if bytes.HasPrefix(t.text[at:], []byte(quoted)) {
			return at, at + len(quoted)
		}
	case 0:
		if bytes.HasPrefix(t.text[at:], []byte(n.Value)) {
			return at, at + len(n.Value)
		}
	}
	return -1, -1
}

// item finds the lines of a list item whose content begins on a line and whose dash is in a
// column: up to the last line with content that is indented more than the dash.
func (t *lineTable) item(line, dash int) (start, end int) {
	if line < 1 || line > len(t.starts) {
		return -1, -1
	}
	cut := func(n int) []byte {
		stop := len(t.text)
		if n < len(t.starts) {
			stop = t.starts[n]
		}
		return t.text[t.starts[n-1]:stop]
	}
	if first := cut(line); leading(first) != dash || len(first) <= dash || first[dash] != '-' {
		return -1, -1
	}
	last := line
	for n := line + 1; n <= len(t.starts); n++ {
		body := bytes.TrimRight(cut(n), " \t\r\n")
		if len(body) == 0 {
			continue
		}
		if leading(body) <= dash {
			break
		}
		if body[leading(body)] != '#' {
			last = n
		}
	}
	start = t.starts[line-1]
	return start, t.starts[last-1] + len(cut(last))
}

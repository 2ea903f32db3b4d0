package policydoc

import "bytes"

// readPlain reads the form nearly every document has: version first, then a block list of
// name and quota in one-line scalars without escapes, all in printable ASCII, comments and
// blank lines anywhere. It is some ten times faster than a YAML parser and needs a fraction of
// the memory, which matters at 100,000 tenants. It answers ok = false for every document it is
// not sure about, the wrong ones among them; those are the YAML parser's.
func readPlain(text []byte) (*Document, *layout, bool) {
	p := plain{text: text, lay: &layout{plain: true, block: true, emptyStart: -1, emptyEnd: -1}}
	breaks := 0
	for _, c := range text {
		if c == '\n' {
			breaks++
		}
		if (c < 0x20 || c > 0x7e) && c != '\n' && c != '\r' {
			return nil, nil, false
		}
	}
	room := breaks/2 + 1
	p.doc.Tenants, p.lay.entries = make([]Tenant, 0, room), make([]entry, 0, room)
	p.names = make(map[string]struct{}, room)
	if !p.version() || !p.tenants() {
		return nil, nil, false
	}
	return &p.doc, p.lay, true
}

// plain is a cursor over the lines of a text.
type plain struct {
	text  []byte
	next  int // offset of the next line
	line  int // number of the current line, from 1
	start int // offset of the current line
	cur   []byte
	doc   Document
	lay   *layout
	names map[string]struct{}
}

// advance moves to the next line that is neither blank nor a comment.
func (p *plain) advance() bool {
	for p.next < len(p.text) {
		p.start = p.next
		end := bytes.IndexByte(p.text[p.next:], '\n')
		if end < 0 {
			p.cur, p.next = p.text[p.start:], len(p.text)
		} else {
			p.cur, p.next = p.text[p.start:p.start+end], p.start+end+1
			if n := len(p.cur); n > 0 && p.cur[n-1] == '\r' {
				p.cur = p.cur[:n-1]
			}
		}
		p.line++
		if bytes.IndexByte(p.cur, '\r') >= 0 {
			p.cur = []byte("\r") // a break of its own: no prefix below matches
			return true
		}
		if rest := bytes.TrimLeft(p.cur, " "); len(rest) > 0 && rest[0] != '#' {
			return true
		}
	}
	p.cur = nil
	return false
}

func (p *plain) version() bool {
	if !p.advance() || !bytes.HasPrefix(p.cur, []byte("version: ")) {
		return false
	}
	from, to, ok := p.scalar(len("version: "))
	return ok && string(p.text[from:to]) == "1"
}

func (p *plain) tenants() bool {
	if !p.advance() || !bytes.HasPrefix(p.cur, []byte("tenants:")) || !emptyRest(p.cur[len("tenants:"):]) {
		return false
	}
	p.lay.colon = p.start + len("tenants:")
	indent := -1
	more := p.advance()
	for more {
		dash := leading(p.cur)
		if indent < 0 {
			indent = dash
		}
		rest := p.cur[dash:]
		if dash != indent || len(rest) < 2 || rest[0] != '-' || rest[1] != ' ' {
			return false
		}
		column := dash + 1 + leading(rest[1:])
		var e entry
		e.start, e.dash, e.column = p.start, dash, column
		t := Tenant{Line: p.line}
		var name, quota bool
		for pair := 0; pair < 2; pair++ {
			if pair == 1 {
				if !p.advance() || leading(p.cur) != column {
					return false
				}
			}
			rest := p.cur[min(column, len(p.cur)):]
			switch {
			case bytes.HasPrefix(rest, []byte("name: ")) && !name:
				from, to, ok := p.scalar(column + len("name: "))
				if !ok {
					return false
				}
				t.Name, name = string(p.text[from:to]), true
			case bytes.HasPrefix(rest, []byte("quota: ")) && !quota:
				from, to, ok := p.scalar(column + len("quota: "))
				if !ok {
					return false
				}
				n, err := ParseQuota(string(p.text[from:to]))
				if err != nil {
					return false
				}
				if c := p.text[to:]; len(c) > 0 && (c[0] == '"' || c[0] == '\'') && from > 0 && p.text[from-1] == c[0] {
					from, to = from-1, to+1
				}
				t.Quota, quota = n, true
				e.quotaStart, e.quotaEnd = from, to
			default:
				return false
			}
			e.end = p.next
		}
		if _, double := p.names[t.Name]; double || !ValidName(t.Name) {
			return false
		}
		p.names[t.Name] = struct{}{}
		p.doc.Tenants = append(p.doc.Tenants, t)
		p.lay.entries = append(p.lay.entries, e)
		more = p.advance()
	}
	return indent >= 0
}

// scalar reads the value at a column of the current line, which must be all that is left of
// the line but for a comment. The offsets are those of the text without its quotes.
func (p *plain) scalar(column int) (from, to int, ok bool) {
	column += leading(p.cur[column:])
	rest := p.cur[column:]
	if len(rest) == 0 {
		return 0, 0, false
	}
	base := p.start + column
	if q := rest[0]; q == '"' || q == '\'' {
		n := bytes.IndexByte(rest[1:], q)
		if n < 0 || q == '"' && bytes.IndexByte(rest[1:1+n], '\\') >= 0 || !emptyRest(rest[n+2:]) {
			return 0, 0, false
		}
		return base + 1, base + 1 + n, true
	}
	n := 0
	for n < len(rest) && (rest[n] >= 'a' && rest[n] <= 'z' || rest[n] >= 'A' && rest[n] <= 'Z' || rest[n] >= '0' && rest[n] <= '9' ||
		n > 0 && (rest[n] == '_' || rest[n] == '-' || rest[n] == '.' || rest[n] == '/')) {
		n++
	}
	if n == 0 || !emptyRest(rest[n:]) {
		return 0, 0, false
	}
	if s := string(rest[:n]); s == "null" || s == "Null" || s == "NULL" {
		return 0, 0, false
	}
	return base, base + n, true
}

// emptyRest reports whether what follows a value is nothing but spaces and a comment.
func emptyRest(rest []byte) bool {
	n := leading(rest)
	return n == len(rest) || n > 0 && rest[n] == '#'
}

// leading counts the spaces a line begins with.
func leading(line []byte) int {
	n := 0
	for n < len(line) && line[n] == ' ' {
		n++
	}
	return n
}

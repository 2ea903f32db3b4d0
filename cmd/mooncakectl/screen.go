package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// screen writes for people and programs.
type screen struct {
	out, err           io.Writer
	json               bool
	colorOut, colorErr bool
	live               bool // a person sees what goes to err, while it goes on
}

// lockedWriter is shared by a command and the log lines of the connector it runs.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// style is a colour by its number in the escape sequence.
type style int

const (
	plain  style = 0
	bold   style = 1
	faint  style = 2
	red    style = 31
	green  style = 32
	yellow style = 33
)

func paint(on bool, s style, text string) string {
	if !on || s == plain || text == "" {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", s, text)
}

// printJSON writes a value for programs, with a line break at the end.
func (s *screen) printJSON(v any) error {
	e := json.NewEncoder(s.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printLine writes a value on one line, for programs that read one event after the other.
func (s *screen) printLine(v any) error {
	e := json.NewEncoder(s.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// complain says why a command failed.
func (s *screen) complain(command string, f *failure) {
	if s.json {
		e := json.NewEncoder(s.err)
		e.SetEscapeHTML(false)
		_ = e.Encode(struct {
			Error    string `json:"error"`
			Hint     string `json:"hint,omitempty"`
			ExitCode int    `json:"exit_code"`
		}{f.text, f.hint, f.code})
		return
	}
	fmt.Fprintf(s.err, "%s %s: %s\n", paint(s.colorErr, red, "error:"), command, f.text)
	if f.hint != "" {
		fmt.Fprintf(s.err, "%s\n", paint(s.colorErr, faint, "  "+f.hint))
	}
}

// note tells a person something beside the result.
func (s *screen) note(format string, args ...any) {
	if !s.json {
		fmt.Fprintln(s.err, paint(s.colorErr, faint, fmt.Sprintf(format, args...)))
	}
}

// progress replaces the line that says what is going on; "" takes it away. Only a person at a
// terminal sees it.
func (s *screen) progress(format string, args ...any) {
	if s.live {
		fmt.Fprint(s.err, "\r\x1b[K"+fmt.Sprintf(format, args...))
	}
}

// cell is a piece of a table.
type cell struct {
	text  string
	style style
	right bool // aligned to the right: numbers
}

func left(text string) cell   { return cell{text: text} }
func number(text string) cell { return cell{text: text, right: true} }
func (c cell) in(s style) cell {
	c.style = s
	return c
}

// table writes rows below a line of headings, if any, columns two blanks apart.
func (s *screen) table(headings []string, rows [][]cell) {
	head := make([]cell, len(headings))
	for i, h := range headings {
		head[i] = left(h).in(bold)
		for _, row := range rows {
			if i < len(row) && row[i].right {
				head[i].right = true
			}
		}
	}
	all := rows
	if headings != nil {
		all = append([][]cell{head}, rows...)
	}
	var width []int
	for _, row := range all {
		for i := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			row[i].text = printable(row[i].text)
			width[i] = max(width[i], columns(row[i].text))
		}
	}
	for _, row := range all {
		var line strings.Builder
		for i, c := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			space := strings.Repeat(" ", width[i]-columns(c.text))
			switch {
			case c.right:
				line.WriteString(space + paint(s.colorOut, c.style, c.text))
			case i == len(row)-1:
				line.WriteString(paint(s.colorOut, c.style, c.text))
			default:
				line.WriteString(paint(s.colorOut, c.style, c.text) + space)
			}
		}
		fmt.Fprintln(s.out, strings.TrimRight(line.String(), " "))
	}
}

// printable takes out what would move the cursor: names come from outside.
func printable(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.String()
}

// columns is how wide a text is on the screen.
func columns(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana), r >= 0x1f300 && r < 0x1fb00, r >= 0xff01 && r < 0xff61:
			n += 2
		default:
			n++
		}
	}
	return n
}

// units of sizes, largest first.
var units = []struct {
	name string
	size uint64
}{{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}}

// size writes bytes the way a policy does, with powers of 1024: whole numbers of a unit stay
// whole, others are rounded to two decimals.
func size(n uint64) string {
	for _, u := range units {
		if n < u.size {
			continue
		}
		if n%u.size == 0 {
			return fmt.Sprintf("%d%s", n/u.size, u.name)
		}
		return fmt.Sprintf("%.2f%s", float64(n)/float64(u.size), u.name)
	}
	return fmt.Sprintf("%dB", n)
}

// plural writes "1 tenant", "2 tenants".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

package app

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxLogLine bounds one line of the log in bytes: names come from clients and documents and
// may be megabytes long.
const maxLogLine = 16 << 10

// lines keeps a log in which every record is one line, as long as each is given to Write
// whole: line breaks inside become "\n" in two characters, what is too long is cut.
type lines struct{ w io.Writer }

// Write writes one record and reports it as written whole.
func (l lines) Write(record []byte) (int, error) {
	text := bytes.TrimSuffix(record, []byte("\n"))
	if len(text) <= maxLogLine && bytes.IndexByte(text, '\n') < 0 {
		return l.w.Write(record)
	}
	cut := len(text)
	if cut > maxLogLine {
		for cut = maxLogLine; cut > 0 && !utf8.RuneStart(text[cut]); cut-- {
		}
	}
	line := bytes.ReplaceAll(text[:cut], []byte("\n"), []byte(`\n`))
	if cut < len(text) {
		line = fmt.Appendf(line, "... (%d more bytes)", len(text)-cut)
	}
	if _, err := l.w.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	return len(record), nil
}

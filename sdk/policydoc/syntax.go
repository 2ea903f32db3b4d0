package policydoc

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// locateLimit is the size of text, in bytes, up to which the line of a syntax error is looked
// for with care; it costs up to a few dozen parses.
const locateLimit = 256 << 10

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntaxError makes an error of the YAML parser ours. The parser names the line where the
// surrounding construct began, one less than that, or none at all; people want the line that
// broke it, which is the last line of the shortest beginning of the text that fails likewise.
func syntaxError(text []byte, err error) error {
	line, reason := splitYAML(err)
	if len(text) <= locateLimit {
		line = locate(text, reason)
	}
	if line == 0 {
		line = 1
	}
	e := &Error{Line: line, Message: "invalid YAML: " + reason}
	switch {
	case strings.Contains(reason, "tab character") || strings.Contains(reason, "cannot start any token") && tabIndented(text, line):
		e.Hint = "indent with spaces, not tabs"
	case strings.Contains(reason, "UTF-8"), strings.Contains(reason, "control characters"):
		e.Hint = "a policy is UTF-8 text"
	}
	return e
}

func splitYAML(err error) (line int, reason string) {
	m := yamlError.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	if m == nil {
		return 0, shown(err.Error())
	}
	line, _ = strconv.Atoi(m[1])
	return line, shown(m[2])
}

// locate finds the number of the first line with which the text fails for this reason: line by
// line in short texts, by halving in long ones.
func locate(text []byte, reason string) int {
	ends := lineEnds(text)
	fails := func(n int) bool {
		_, err := decode(yaml.NewDecoder(bytes.NewReader(text[:ends[n-1]])))
		if err == nil || errors.Is(err, io.EOF) {
			return false
		}
		_, r := splitYAML(err)
		return r == reason
	}
	if len(ends) <= 64 {
		for n := 1; n < len(ends); n++ {
			if fails(n) {
				return n
			}
		}
		return len(ends)
	}
	low, high := 1, len(ends)
	for low < high {
		if mid := (low + high) / 2; fails(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// lineEnds lists the offset after each line of a text.
func lineEnds(text []byte) []int {
	var ends []int
	for at := 0; at < len(text); {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return append(ends, len(text))
		}
		at += n + 1
		ends = append(ends, at)
	}
	if ends == nil {
		ends = []int{len(text)}
	}
	return ends
}

func tabIndented(text []byte, line int) bool {
	ends := lineEnds(text)
	if line < 1 || line > len(ends) {
		return false
	}
	start := 0
	if line > 1 {
		start = ends[line-2]
	}
	trimmed := bytes.TrimLeft(text[start:ends[line-1]], " ")
	return len(trimmed) > 0 && trimmed[0] == '\t'
}

package policydoc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Print writes the canonical form: tenants sorted bytewise by name, names in double quotes,
// quotas in plain bytes. The argument is not changed.
func Print(tenants []Tenant) []byte {
	if len(tenants) == 0 {
		return []byte("version: 1\n\ntenants: []\n")
	}
	sorted := slices.Clone(tenants)
	slices.SortFunc(sorted, func(a, b Tenant) int { return strings.Compare(a.Name, b.Name) })
	out := []byte("version: 1\n\ntenants:\n")
	for _, t := range sorted {
		out = append(out, "  - name: "...)
		out = appendName(out, t.Name)
		out = append(out, "\n    quota: "...)
		out = strconv.AppendUint(out, t.Quota, 10)
		out = append(out, '\n')
	}
	return out
}

// Printable reports whether a name can be written into a document and read back: it is valid
// UTF-8, because a YAML text can't hold anything else.
func Printable(name string) bool { return utf8.ValidString(name) }

// appendName writes a name in double quotes. Characters from U+0080 on stand raw, except those
// a YAML reader would refuse or fold into a space: they are escaped.
func appendName(out []byte, name string) []byte {
	out = append(out, '"')
	for i := 0; i < len(name); {
		c := name[i]
		if c < utf8.RuneSelf {
			i++
			switch c {
			case '\\', '"':
				out = append(out, '\\', c)
			case 0:
				out = append(out, `\0`...)
			case '\a':
				out = append(out, `\a`...)
			case '\b':
				out = append(out, `\b`...)
			case '\t':
				out = append(out, `\t`...)
			case '\n':
				out = append(out, `\n`...)
			case '\v':
				out = append(out, `\v`...)
			case '\f':
				out = append(out, `\f`...)
			case '\r':
				out = append(out, `\r`...)
			default:
				if c < 0x20 || c == 0x7f {
					out = fmt.Appendf(out, `\x%02X`, c)
				} else {
					out = append(out, c)
				}
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(name[i:])
		switch {
		case r >= 0x80 && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
			out = fmt.Appendf(out, `\u%04X`, r)
		default:
			out = append(out, name[i:i+n]...)
		}
		i += n
	}
	return append(out, '"')
}

package pattern

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestSyntaxErrors(t *testing.T) {
	tests := []struct {
		pattern string
		offset  int
		reason  string
	}{
		{`ab(cd`, 2, "'(' without a ')' after it"},
		{`ab)`, 2, "')' without a '(' before it"},
		{`a|*`, 2, `quantifier "*" without anything to repeat before it`},
		{`(a|+)`, 3, `quantifier "+" without anything to repeat before it`},
		{`^*`, 1, `quantifier "*" without anything to repeat before it`},
		{`(?=a){2}`, 5, `quantifier "{" without anything to repeat before it`},
		{`(?<n>a)`, 0, "unknown group, only (?:...), (?=...) and (?!...) exist"},
		{`x(?`, 1, "unknown group, only (?:...), (?=...) and (?!...) exist"},
		{`ab{`, 2, "repeat is not of the form {n}, {n,} or {n,m}"},
		{`ab{ 1}`, 2, "repeat is not of the form {n}, {n,} or {n,m}"},
		{`ab{1;2}`, 2, "repeat is not of the form {n}, {n,} or {n,m}"},
		{`a{5,3}`, 1, "repeat with the smaller number, 3, after the larger one, 5"},
		{`a{99999999999}`, 2, "number too large, at most 2147483647 is allowed"},
		{`a{100000}`, 9, "pattern expands to more than 100000 states, use smaller repeats"},
		{`(a{1000}){1000}b`, 15, "pattern expands to more than 100000 states, use smaller repeats"},
		{`a\`, 1, `'\' at the end of the pattern`},
		{`a\c`, 1, `'\c' without a character after it`},
		{`a\x4`, 1, `'\x' without 2 hexadecimal digits after it`},
		{`\u004g`, 0, `'\u' without 4 hexadecimal digits after it`},
		{`(a)\2`, 3, "back reference to group 2, but only 1 groups begin before it"},
		{`(a\1)`, 2, "back reference to group 1 from within it"},
		{`(a)\99999999999`, 4, "number too large, at most 2147483647 is allowed"},
		{`x[a`, 1, "'[' without a ']' after it"},
		{`x[`, 1, "'[' without a ']' after it"},
		{`x[^`, 1, "'[' without a ']' after it"},
		{`x[[`, 1, "'[' without a ']' after it"},
		{`[a\1]`, 2, `escape "\\1" is not allowed in brackets`},
		{`[\B]`, 1, `escape "\\B" is not allowed in brackets`},
		{`[z-a]`, 2, `range from "z" to "a" is in the wrong order`},
		{`[a-\xff]`, 2, `range from "a" to "\xff" is in the wrong order`},
		{`[\d-z]`, 3, "range begins with a class, write '-' first or last in the brackets"},
		{`[a-\d]`, 2, "range ends with a class or symbol, write '-' first or last in the brackets"},
		{`[a-[.z.]]`, 2, "range ends with a class or symbol, write '-' first or last in the brackets"},
		{`[[:foo:]]`, 1, `unknown character class "foo"`},
		{`[[.1.]]`, 1, `unknown collating symbol "1"`},
		{`[[=e1=]]`, 1, `unknown collating symbol "e1"`},
		{`[[:alpha]]`, 1, "'[:' without ':]' right after a name"},
		{strings.Repeat("(", maxDepth+1), maxDepth, "nested deeper than 1000 levels"},
		{"a" + strings.Repeat("*", maxDepth+1), maxDepth + 1, "nested deeper than 1000 levels"},
		{strings.Repeat("a", MaxLength+1), MaxLength, "pattern of 65537 bytes, at most 65536 are allowed"},
		{"(?=" + strings.Repeat("^", 40000) + ")", 40004, "pattern takes 1360060 bytes for the engine, at most 1048576 are allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.pattern[:min(len(tt.pattern), 20)], func(t *testing.T) {
			p, err := Compile(tt.pattern)
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("%v, %v, want a syntax error", p, err)
			}
			if syntax.Offset != tt.offset || syntax.Reason != tt.reason {
				t.Errorf("at %d: %s\nwant %d: %s", syntax.Offset, syntax.Reason, tt.offset, tt.reason)
			}
			want := fmt.Sprintf("invalid regular expression: %s (at byte %d)", tt.reason, tt.offset)
			if err.Error() != want {
				t.Errorf("text %q, want %q", err, want)
			}
		})
	}
}

// TestStateLimit has the smallest count that the C++ library refuses for each pattern.
func TestStateLimit(t *testing.T) {
	tests := []struct {
		format  string
		refused int
	}{
		{`a{%d}`, 99994},
		{`(a){%d}`, 24998},
		{`(?:a|b*){%d}`, 12499},
		{`(?:a+?b?|c(?=d|\b)){%d}`, 5262},
		{`(?:a{3}){%d}`, 14284},
		{`(?:a{2,}){%d}`, 14284},
		{`a{0,%d}`, 49997},
		{`(?:ab){1,%d}`, 19999},
		{`(?:(?:a?){10}|^){%d}x{5}`, 1723},
		{`(x)(?:x*y*z?[a-b]\1(?!a|b|)){%d,}`, 4544},
		{`a*{%d}`, 49997},
		{`(?:){%d}`, 49997},
		{`(?:a{0}b){%d}`, 19998},
	}
	for _, tt := range tests {
		if _, err := Compile(fmt.Sprintf(tt.format, tt.refused-1)); err != nil {
			t.Errorf(tt.format+": %v", tt.refused-1, err)
		}
		if _, err := Compile(fmt.Sprintf(tt.format, tt.refused)); err == nil {
			t.Errorf(tt.format+": compiles", tt.refused)
		}
	}
}

// TestCompileLimits has patterns just within the bounds.
func TestCompileLimits(t *testing.T) {
	for name, pattern := range map[string]string{
		"length":      strings.Repeat("a", MaxLength),
		"dots":        strings.Repeat(".", MaxLength),
		"groups":      strings.Repeat("()", 20000),
		"nesting":     strings.Repeat("(", maxDepth) + strings.Repeat(")", maxDepth),
		"quantifiers": "a" + strings.Repeat("*", maxDepth),
		"lookaheads":  strings.Repeat("(?=", maxDepth) + strings.Repeat(")", maxDepth),
		"both":        strings.Repeat("(?:", maxDepth/2) + "a" + strings.Repeat(")*", maxDepth/2),
	} {
		if _, err := Compile(pattern); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

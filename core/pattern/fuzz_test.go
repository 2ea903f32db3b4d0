package pattern

import (
	"errors"
	"testing"
	"time"
)

// FuzzCompile looks for patterns that panic, that the engine refuses although the parser took
// them, or that outlast their limit.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		"", "a", "^ab$|^k1$", `(a|ab)(c|bcd)\1`, "[a-z-9]", "[]-a]", "[^]a]", "[[.a.]-z[=b=][:alpha:]]", `[\w-]`,
		"a{2}{3,}{4,5}??", `(?=^\b(?!\B))`, `\cA\x41\u0141\0`, "a{1001}", "(a+)+$", `(?:(?=(a))b|a)\1`, "\xff[\x80-\xff]",
		"(?<n>a)", "[a-", "[[:", `\`, "a{99999999999}", "((((((a?)*)+)?)*)+)*$",
	} {
		f.Add(seed, "aaaa\xffb")
	}
	const limit = 20 * time.Millisecond
	f.Fuzz(func(t *testing.T, pattern, key string) {
		start := time.Now()
		p, err := Compile(pattern)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("%q: %v", pattern, err)
			}
			if syntax.Offset < 0 || syntax.Offset > len(pattern) || syntax.Reason == "" {
				t.Fatalf("%q: %+v", pattern, syntax)
			}
			return
		}
		if _, err := p.Match(key, limit); err != nil && !errors.Is(err, ErrTimeout) {
			t.Fatalf("%q on %q: %v", pattern, key, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Fatalf("%q on %q took %v", pattern, key, took)
		}
	})
}

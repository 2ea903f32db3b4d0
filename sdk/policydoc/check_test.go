package policydoc

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCheckTellsEverything(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // "line:column message"
		tenants    int
	}{
		{"good", "version: 1\ntenants:\n  - name: a\n    quota: 1GB\n", nil, 1},
		{"several", "version: 2\ntenants:\n  - name: a\n    quota: 5GiB\n  - name: _b\n    quota: -1\n  - nam: c\n    quota: 1\n  - name: a\n    quota: 2\n  - name: d\n    quota: 1\n  - 7\n  - name: e\n", []string{
			"1:10 unsupported tenant quota policy version: 2",
			"4:12 invalid quota for tenant 'a': unsupported quota unit 'GiB'",
			"5:11 invalid tenant name '_b'",
			"6:12 invalid quota for tenant '_b': quota must start with an integer",
			"7:5 tenant name is required",
			"9:11 duplicate tenant name 'a'",
			"13:5 tenant entry must be a YAML map",
			"14:5 tenant quota is required",
		}, 1},
		{"no version, no list", "tenants: 7\n", []string{"1:1 tenant quota policy version is required", "1:1 tenants must be a YAML sequence"}, 0},
		{"not YAML", "version: 1\ntenants: [\n", []string{"2:0 invalid YAML: did not find expected node content"}, 0},
		{"not a map", "x", []string{"1:0 tenant quota policy must be a YAML map"}, 0},
		{"text after the end", "version: 1\ntenants: []\n...\nx: y\n  z\n", []string{"5:0 invalid YAML: text after the end of the document"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc, errs := Check([]byte(c.text))
			var got []string
			for _, e := range errs {
				got = append(got, fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Message))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if len(doc.Tenants) != c.tenants {
				t.Errorf("%d tenants, want %d", len(doc.Tenants), c.tenants)
			}
			if _, err := Parse([]byte(c.text)); (err == nil) != (errs == nil) || err != nil && err.Error() != errs[0].Error() {
				t.Errorf("Parse says %v, Check says %v first", err, errs)
			}
		})
	}
}

func TestCheckIsBounded(t *testing.T) {
	text := []byte("version: 1\ntenants:\n" + strings.Repeat("  - name: a\n    quota: 0\n", 500))
	_, errs := Check(text)
	if len(errs) != maxErrors+1 || errs[maxErrors].Message != "899 more errors" {
		t.Errorf("%d errors, the last %v", len(errs), errs[len(errs)-1])
	}
	if _, errs := Check(bytes.Repeat([]byte("#"), MaxSize+1)); len(errs) != 1 || !strings.Contains(errs[0].Error(), "at most 67108864") {
		t.Errorf("too large: %v", errs)
	}
}

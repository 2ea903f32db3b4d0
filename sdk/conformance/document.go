package conformance

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// document is a valid policy of one tenant that tells which one it is.
func document(n int) []byte {
	return policydoc.Print([]policydoc.Tenant{{Name: fmt.Sprintf("conformance-%06d", n), Quota: uint64(n+1) << 20}})
}

// number undoes document; false for another one.
func number(text []byte) (int, bool) {
	doc, err := policydoc.Parse(text)
	if err != nil || len(doc.Tenants) != 1 {
		return 0, false
	}
	var n int
	if _, err := fmt.Sscanf(doc.Tenants[0].Name, "conformance-%06d", &n); err != nil {
		return 0, false
	}
	return n, true
}

// crowd is a valid policy of n tenants.
func crowd(n int) []byte {
	tenants := make([]policydoc.Tenant, n)
	for i := range tenants {
		tenants[i] = policydoc.Tenant{Name: fmt.Sprintf("tenant-%06d", i), Quota: uint64(i+1) << 20}
	}
	return policydoc.Print(tenants)
}

// padded makes a document larger with comments before it, to exactly size bytes: what is cut off
// takes the tenants along.
func padded(text []byte, size int) []byte {
	const line = 100
	padding := size - len(text)
	b := bytes.Buffer{}
	b.Grow(size)
	for padding > 0 {
		n := min(line, padding)
		if padding-n == 1 { // a line has a sign and a break
			n--
		}
		b.WriteString("#" + strings.Repeat("x", n-2) + "\n")
		padding -= n
	}
	b.Write(text)
	return b.Bytes()
}

// same reports whether two documents mean the same: equal bytes, or equal tenants, for
// connectors that make the document from something else.
func same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	one, err := policydoc.Parse(a)
	if err != nil {
		return false
	}
	two, err := policydoc.Parse(b)
	if err != nil || len(one.Tenants) != len(two.Tenants) {
		return false
	}
	quotas := make(map[string]uint64, len(one.Tenants))
	for _, t := range one.Tenants {
		quotas[t.Name] = t.Quota
	}
	for _, t := range two.Tenants {
		if quota, ok := quotas[t.Name]; !ok || quota != t.Quota {
			return false
		}
	}
	return true
}

// empty reports whether a document would leave no tenant.
func empty(text []byte) bool {
	if policydoc.Blank(text) {
		return true
	}
	doc, err := policydoc.Parse(text)
	return err == nil && len(doc.Tenants) == 0
}

package policydoc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// seeds gives a fuzz target the refused documents and some accepted ones.
func seeds(f *testing.F, add func(text []byte)) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "policy", "bad", "*.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(text) < 4096 {
			add(text)
		}
	}
	for _, text := range []string{
		sample, "version: 1\ntenants: []\n", "version: 1\ntenants:\n- name: a\n  quota: 5",
		"{\"version\":1,\"tenants\":[{\"name\":\"a\",\"quota\":5}]}",
		"version: 1\nx: &x {name: a, quota: 5}\ntenants:\n- *x\n- name: b\n  quota: 6GB\n",
		"version: 1\r\ntenants:\r\n- name: \"a\"\r\n  quota: 5\r\n", "\xef\xbb\xbfversion: 1\ntenants:\n -\n  name: a\n  quota: 5\n",
	} {
		add([]byte(text))
	}
}

func FuzzParse(f *testing.F) {
	seeds(f, func(text []byte) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		doc, err := Parse(text)
		if err != nil {
			if e, ok := err.(*Error); !ok || doc != nil || e.Line < 1 || e.Message == "" {
				t.Fatalf("%q: %#v with %v", text, err, doc)
			}
			return
		}
		seen := map[string]bool{}
		for _, tenant := range doc.Tenants {
			if seen[tenant.Name] || !ValidName(tenant.Name) || tenant.Quota < 1 || tenant.Quota > MaxQuota || tenant.Line < 1 {
				t.Fatalf("%q: %v", text, tenant)
			}
			seen[tenant.Name] = true
		}
		if plain, _, ok := readPlain(text); ok {
			slow, _, err := readTree(text)
			if err != nil || fmt.Sprint(plain) != fmt.Sprint(slow) {
				t.Fatalf("%q: plain %v, tree %v, %v", text, plain, slow, err)
			}
		}
		again, err := Parse(Print(doc.Tenants))
		if err != nil || len(again.Tenants) != len(doc.Tenants) {
			t.Fatalf("%q: printed and read: %v, %v", text, again, err)
		}
	})
}

func FuzzEdit(f *testing.F) {
	seeds(f, func(text []byte) {
		f.Add(text, "a", uint64(7))
		f.Add(text, "new", uint64(0))
	})
	f.Fuzz(func(t *testing.T, text []byte, name string, quota uint64) {
		if len(text) > 4096 || len(name) > 256 {
			return
		}
		doc, err := Parse(text)
		if err != nil {
			return
		}
		want := map[string]uint64{}
		for _, tenant := range doc.Tenants {
			want[tenant.Name] = tenant.Quota
		}
		var e Edit
		if quota == 0 {
			delete(want, name)
			e, err = Delete(text, name)
		} else {
			want[name] = quota
			e, err = Set(text, name, quota)
		}
		if err != nil {
			if ValidName(name) && Printable(name) && quota <= MaxQuota {
				t.Fatalf("%q, %q, %d: %v", text, name, quota, err)
			}
			return
		}
		got, err := Parse(e.Document)
		if err != nil || len(got.Tenants) != len(want) {
			t.Fatalf("%q, %q, %d -> %q: %v", text, name, quota, e.Document, err)
		}
		for _, tenant := range got.Tenants {
			if want[tenant.Name] != tenant.Quota {
				t.Fatalf("%q, %q, %d -> %q: %v", text, name, quota, e.Document, tenant)
			}
		}
		if e.Rewritten {
			return
		}
		// In place: the others in their order, and every comment line that was there but inside
		// a deleted entry.
		var before, after []string
		for _, tenant := range doc.Tenants {
			if tenant.Name != name {
				before = append(before, tenant.Name)
			}
		}
		for _, tenant := range got.Tenants {
			if tenant.Name != name {
				after = append(after, tenant.Name)
			}
		}
		if !slices.Equal(before, after) {
			t.Fatalf("%q -> %q: order changed", text, e.Document)
		}
		head := commonPrefix(text, e.Document)
		tail := commonPrefix(reversed(text[head:]), reversed(e.Document[head:]))
		if quota > 0 {
			if gone := text[head : len(text)-tail]; bytes.ContainsAny(gone, "\n#") {
				t.Fatalf("%q -> %q: %q was replaced", text, e.Document, gone)
			}
		}
	})
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func reversed(b []byte) []byte {
	r := slices.Clone(b)
	slices.Reverse(r)
	return r
}

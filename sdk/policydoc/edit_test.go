package policydoc

import (
	"errors"
	"strings"
	"testing"
)

const sample = `# Quotas of the inference clusters. Ask before you change one.
version: 1

tenants:
  # production
  - name: chat          # the big one
    quota: 64GB         # until spring
    owner: anna

  - quota: "2TB"
    name: 'search'
  # - name: retired
  #   quota: 1GB
notes: keep me
`

func TestSetInPlace(t *testing.T) {
	tests := []struct {
		name, text, tenant string
		quota              uint64
		want               string
	}{
		{"replace", sample, "chat", 5, strings.Replace(sample, "64GB ", "5 ", 1)},
		{"replace quoted", sample, "search", 77, strings.Replace(sample, `"2TB"`, `77`, 1)},
		{"add", sample, "new one", 9, strings.Replace(sample, "    name: 'search'\n", "    name: 'search'\n  - name: \"new one\"\n    quota: 9\n", 1)},
		{
			"CRLF", strings.ReplaceAll(sample, "\n", "\r\n"), "x", 9,
			strings.ReplaceAll(strings.Replace(sample, "    name: 'search'\n", "    name: 'search'\n  - name: \"x\"\n    quota: 9\n", 1), "\n", "\r\n"),
		},
		{"plain form, CRLF", "version: 1\r\ntenants:\r\n- name: a\r\n  quota: 5\r\n", "b", 6, "version: 1\r\ntenants:\r\n- name: a\r\n  quota: 5\r\n- name: \"b\"\r\n  quota: 6\r\n"},
		{"no newline at the end", "version: 1\ntenants:\n-   name: a\n    quota: 5", "b", 6, "version: 1\ntenants:\n-   name: a\n    quota: 5\n-   name: \"b\"\n    quota: 6"},
		{"no newline, replace", "version: 1\ntenants:\n- name: a\n  quota: 5", "a", 6, "version: 1\ntenants:\n- name: a\n  quota: 6"},
		{"byte order mark", "\xef\xbb\xbfversion: 1\ntenants:\n- name: a\n  quota: 5\n", "a", 6, "\xef\xbb\xbfversion: 1\ntenants:\n- name: a\n  quota: 6\n"},
		{"umlauts before", "version: 1\ntenants: # für\n- name: \"ü ä\"\n  quota: 5GB # größer\n", "ü ä", 6, "version: 1\ntenants: # für\n- name: \"ü ä\"\n  quota: 6 # größer\n"},
		{"empty list", "# x\nversion: 1\ntenants: [ ] # none yet\n# end\n", "a", 6, "# x\nversion: 1\ntenants: # none yet\n  - name: \"a\"\n    quota: 6\n# end\n"},
		{"empty list, no newline", "version: 1\ntenants: []", "a", 6, "version: 1\ntenants:\n  - name: \"a\"\n    quota: 6"},
		{"flow entry", "version: 1\ntenants:\n- {name: a, quota: 5GB} # c\n", "a", 6, "version: 1\ntenants:\n- {name: a, quota: 6} # c\n"},
		{"JSON", "{\"version\":1,\n \"tenants\":[{\"name\":\"a\",\"quota\":\"5GB\"}]}\n", "a", 6, "{\"version\":1,\n \"tenants\":[{\"name\":\"a\",\"quota\":6}]}\n"},
		{"second document stays", "version: 1\ntenants:\n- name: a\n  quota: 5\n---\nother: true\n", "b", 6, "version: 1\ntenants:\n- name: a\n  quota: 5\n- name: \"b\"\n  quota: 6\n---\nother: true\n"},
		{
			"keys after the list", "version: 1\ntenants:\n  - name: a\n    quota: 5\n    note: |\n      many\n\n      lines\nlast: 1\n", "b", 6,
			"version: 1\ntenants:\n  - name: a\n    quota: 5\n    note: |\n      many\n\n      lines\n  - name: \"b\"\n    quota: 6\nlast: 1\n",
		},
		{"first of equal keys", "version: 1\ntenants:\n- name: a\n  quota: 5\n  quota: 7\n", "a", 6, "version: 1\ntenants:\n- name: a\n  quota: 6\n  quota: 7\n"},
		{"line breaks of other kinds in a comment", "version: 1 # a\u2028# b\ntenants:\n- name: a\n  quota: 5\n", "a", 6, "version: 1 # a\u2028# b\ntenants:\n- name: a\n  quota: 6\n"},
		{"blank text", " \n\n", "a", 6, "version: 1\n\ntenants:\n  - name: \"a\"\n    quota: 6\n"},
		{"no text", "", "a", 6, "version: 1\n\ntenants:\n  - name: \"a\"\n    quota: 6\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := Set([]byte(tt.text), tt.tenant, tt.quota)
			if err != nil {
				t.Fatal(err)
			}
			if string(e.Document) != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", e.Document, tt.want)
			}
			if !e.Changed || e.Rewritten || e.Warning != "" {
				t.Errorf("%v %v %q", e.Changed, e.Rewritten, e.Warning)
			}
		})
	}
}

func TestDeleteInPlace(t *testing.T) {
	tests := []struct{ name, text, tenant, want string }{
		{"first", sample, "chat", strings.Replace(sample, "  - name: chat          # the big one\n    quota: 64GB         # until spring\n    owner: anna\n", "", 1)},
		{"last", sample, "search", strings.Replace(sample, "  - quota: \"2TB\"\n    name: 'search'\n", "", 1)},
		{"only one", "version: 1\ntenants: # all\n  - name: a\n    quota: 5\n# end\n", "a", "version: 1\ntenants: [] # all\n# end\n"},
		{"only one, YAML reader", "version: 1\n'tenants':\n  - name: a\n    quota: 5\n# end\n", "a", "version: 1\n'tenants': []\n# end\n"},
		{"no newline at the end", "version: 1\ntenants:\n- name: a\n  quota: 5\n- name: b\n  quota: 6", "b", "version: 1\ntenants:\n- name: a\n  quota: 5\n"},
		{"alias entry", "version: 1\nx: &x {name: a, quota: 5}\ntenants:\n- *x\n- name: b\n  quota: 6\n", "a", "version: 1\nx: &x {name: a, quota: 5}\ntenants:\n- name: b\n  quota: 6\n"},
		{"comment inside goes, behind stays", "version: 1\ntenants:\n- name: a\n  # inside\n  quota: 5\n  # behind\n- name: b\n  quota: 6\n", "a", "version: 1\ntenants:\n  # behind\n- name: b\n  quota: 6\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := Delete([]byte(tt.text), tt.tenant)
			if err != nil {
				t.Fatal(err)
			}
			if string(e.Document) != tt.want || !e.Changed || e.Rewritten {
				t.Errorf("got:\n%s\nwant:\n%s (changed %v, rewritten %v)", e.Document, tt.want, e.Changed, e.Rewritten)
			}
		})
	}
}

func TestEditRewrites(t *testing.T) {
	tests := []struct {
		name string
		edit func() (Edit, error)
		want string
	}{
		{"add to a flow list", func() (Edit, error) {
			return Set([]byte(`{"version":1,"tenants":[{"name":"b","quota":"1KB"}]}`), "a", 6)
		}, "version: 1\n\ntenants:\n  - name: \"a\"\n    quota: 6\n  - name: \"b\"\n    quota: 1024\n"},
		{"quota behind an alias", func() (Edit, error) {
			return Set([]byte("version: 1\nq: &q 5\ntenants:\n- name: a\n  quota: *q\n- name: b\n  quota: *q\n"), "a", 6)
		}, "version: 1\n\ntenants:\n  - name: \"a\"\n    quota: 6\n  - name: \"b\"\n    quota: 5\n"},
		{"quota with an anchor", func() (Edit, error) {
			return Set([]byte("version: 1\ntenants:\n- name: a\n  quota: &q 5\n- name: b\n  quota: *q\n"), "a", 6)
		}, "version: 1\n\ntenants:\n  - name: \"a\"\n    quota: 6\n  - name: \"b\"\n    quota: 5\n"},
		{"entry others refer to", func() (Edit, error) {
			return Delete([]byte("version: 1\ntenants:\n- name: a\n  quota: &q 5\n- name: b\n  quota: *q\n"), "a")
		}, "version: 1\n\ntenants:\n  - name: \"b\"\n    quota: 5\n"},
		{"last of a flow list", func() (Edit, error) {
			return Delete([]byte("{version: 1, tenants: [{name: a, quota: 5}]}"), "a")
		}, "version: 1\n\ntenants: []\n"},
		{"UTF-16", func() (Edit, error) {
			return Set([]byte("\xff\xfe"+utf16("version: 1\ntenants:\n  - name: a\n    quota: 5\n")), "a", 6)
		}, "version: 1\n\ntenants:\n  - name: \"a\"\n    quota: 6\n"},
		{"literal quota", func() (Edit, error) {
			return Set([]byte("version: 1\ntenants:\n- name: a\n  quota: |-\n    5GB\n"), "a", 6)
		}, "version: 1\n\ntenants:\n  - name: \"a\"\n    quota: 6\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := tt.edit()
			if err != nil {
				t.Fatal(err)
			}
			if string(e.Document) != tt.want || !e.Changed || !e.Rewritten || e.Warning == "" {
				t.Errorf("%q, changed %v, rewritten %v, %q", e.Document, e.Changed, e.Rewritten, e.Warning)
			}
		})
	}
}

func TestEditWithoutChange(t *testing.T) {
	for name, edit := range map[string]func() (Edit, error){
		"same quota in other units": func() (Edit, error) { return Set([]byte(sample), "chat", 64<<30) },
		"delete of nobody":          func() (Edit, error) { return Delete([]byte(sample), "nobody") },
	} {
		e, err := edit()
		if err != nil || e.Changed || e.Rewritten || string(e.Document) != sample {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func TestEditRefuses(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"bad name", second(Set([]byte(sample), "_x", 1)), "invalid tenant name '_x' (a name is not empty, does not begin with '_', and has no control characters)"},
		{"name that is no UTF-8", second(Set([]byte(sample), "a\xff", 1)), `invalid tenant name 'a\xff' (a document can only hold UTF-8)`},
		{"zero", second(Set([]byte(sample), "a", 0)), "invalid quota for tenant 'a': quota must be positive"},
		{"too much", second(Set([]byte(sample), "a", 1<<63)), "invalid quota for tenant 'a': quota exceeds maximum supported tenant charge"},
		{"set in a broken text", second(Set([]byte("version: 1\ntenants: 5\n"), "a", 1)), "line 2: tenants must be a YAML sequence (write tenants: [] for none)"},
		{"delete in a broken text", second(Delete(nil, "a")), "line 1: tenant quota policy must be a YAML map (expected the keys version and tenants)"},
	}
	for _, tt := range tests {
		var e *Error
		if !errors.As(tt.err, &e) || tt.err.Error() != tt.want {
			t.Errorf("%s: %v", tt.name, tt.err)
		}
	}
}

func second(_ Edit, err error) error { return err }

package policydoc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseAccepts(t *testing.T) {
	const head = "version: 1\ntenants:\n"
	tests := []struct {
		name, text string
		want       []Tenant
		warnings   []string
	}{
		{
			"block list", "version: 1\n\ntenants:\n  - name: \"a\"\n    quota: 5\n  - name: \"tenant b\"\n    quota: 1048576\n",
			[]Tenant{{"a", 5, 4}, {"tenant b", 1048576, 6}},
			nil,
		},
		{"empty list", "version: 1\ntenants: []\n", nil, nil},
		{"version quoted", "version: \"1\"\ntenants: []\n", nil, nil},
		{"version 01", "version: 01\ntenants: []\n", nil, nil},
		{"version 0x1", "version: 0x1\ntenants: []\n", nil, nil},
		{"version +1", "version: +1\ntenants: []\n", nil, nil},
		{"version with spaces", "version: \" 1 \"\ntenants: []\n", nil, nil},
		{"numeric name", head + "- name: 123\n  quota: 7\n", []Tenant{{"123", 7, 3}}, nil},
		{"float name keeps its text", head + "- name: 1.50\n  quota: 7\n", []Tenant{{"1.50", 7, 3}}, nil},
		{"true name", head + "- name: true\n  quota: 7\n", []Tenant{{"true", 7, 3}}, nil},
		{"quoted null name", head + "- name: \"null\"\n  quota: 7\n", []Tenant{{"null", 7, 3}}, nil},
		{"tagged null name", head + "- name: !!str null\n  quota: 7\n", []Tenant{{"null", 7, 3}}, nil},
		{"default", head + "- name: default\n  quota: 7\n", []Tenant{{"default", 7, 3}}, nil},
		{"quota string", head + "- name: a\n  quota: \"64GB\"\n", []Tenant{{"a", 64 << 30, 3}}, nil},
		{"quota single quoted", head + "- name: a\n  quota: '64KB' # small\n", []Tenant{{"a", 64 << 10, 3}}, nil},
		{"quota leading zeros", head + "- name: a\n  quota: 007\n", []Tenant{{"a", 7, 3}}, nil},
		{
			"quota maximum", head + "- name: a\n  quota: 9223372036854775807\n- name: b\n  quota: 8388607TB\n",
			[]Tenant{{"a", MaxQuota, 3}, {"b", 8388607 << 40, 5}},
			nil,
		},
		{
			"units", head + "- {name: a, quota: 3B}\n- {name: b, quota: 3MB}\n- {name: c, quota: 3TB}\n",
			[]Tenant{{"a", 3, 3}, {"b", 3 << 20, 4}, {"c", 3 << 40, 5}},
			nil,
		},
		{"quota first", head + "  - quota: 5\n    name: a\n", []Tenant{{"a", 5, 3}}, nil},
		{
			"comments and blanks", "# top\n\nversion: 1 # one\n  # odd\ntenants: # all\n\n  # a\n  - name: a # first\n\n    # q\n    quota: 5\n# end",
			[]Tenant{{"a", 5, 8}},
			nil,
		},
		{"CRLF", "version: 1\r\ntenants:\r\n  - name: a\r\n    quota: 5\r\n", []Tenant{{"a", 5, 3}}, nil},
		{"byte order mark", "\xef\xbb\xbfversion: 1\ntenants:\n  - name: a\n    quota: 5\n", []Tenant{{"a", 5, 3}}, nil},
		{"UTF-16", "\xff\xfe" + utf16("version: 1\ntenants:\n  - name: a\n    quota: 5\n"), []Tenant{{"a", 5, 3}}, nil},
		{"flow style", "{version: 1, tenants: [{name: a, quota: 5GB}]}", []Tenant{{"a", 5 << 30, 1}}, nil},
		{
			"JSON", `{"version": 1, "tenants": [{"name": "\u00e9", "quota": 5}, {"name":"b","quota":"6"}]}`,
			[]Tenant{{"é", 5, 1}, {"b", 6, 1}},
			nil,
		},
		{
			"anchors and aliases", "version: &one 1\nq: &q 5GB\ntenants:\n- &a\n  name: a\n  quota: *q\n- name: b\n  quota: *q\n",
			[]Tenant{{"a", 5 << 30, 4}, {"b", 5 << 30, 7}},
			[]string{"line 2: unknown key 'q' is ignored"},
		},
		{
			"aliased list and key", "version: 1\nx: &l [{name: a, quota: 5}]\ny: &t tenants\n*t : *l\n",
			[]Tenant{{"a", 5, 2}},
			[]string{"line 2: unknown key 'x' is ignored", "line 3: unknown key 'y' is ignored"},
		},
		{
			"first of equal keys", "version: 1\nversion: 2\ntenants:\n- name: a\n  quota: 5\n  quota: 6\n  name: b\n",
			[]Tenant{{"a", 5, 4}},
			[]string{
				"line 2: second key 'version' is ignored: the first counts",
				"line 6: second key 'quota' in the entry of tenant 'a' is ignored: the first counts",
				"line 7: second key 'name' in the entry of tenant 'a' is ignored: the first counts",
			},
		},
		{
			"unknown keys", "Verzion: 7\nversion: 1\ntenants:\n- name: a\n  qouta: 9\n  quota: 5\n  owner: {x: [1]}\n",
			[]Tenant{{"a", 5, 4}},
			[]string{
				"line 1: unknown key 'Verzion' is ignored (did you mean 'version'?)",
				"line 5: unknown key 'qouta' in the entry of tenant 'a' is ignored (did you mean 'quota'?)",
				"line 7: unknown key 'owner' in the entry of tenant 'a' is ignored",
			},
		},
		{
			"merge key", "version: 1\nb: &b {quota: 9}\ntenants:\n- name: a\n  quota: 5\n  <<: *b\n",
			[]Tenant{{"a", 5, 4}},
			[]string{
				"line 2: unknown key 'b' is ignored",
				"line 6: unknown key '<<' in the entry of tenant 'a' is ignored: merge keys are not expanded",
			},
		},
		{"key that is a list", "version: 1\n? [x]\n: y\ntenants: []\n", nil, []string{"line 2: a key that is not a scalar is ignored"}},
		{"several documents", "---\nversion: 1\ntenants: []\n---\nversion: 2\n", nil, []string{"only the first of several YAML documents is used"}},
		{"broken second document", "version: 1\ntenants: []\n---\n}\n", nil, []string{"only the first of several YAML documents is used"}},
		{"document end", "version: 1\ntenants: []\n...\n", nil, nil},
		{"name over two lines", head + "- name: a\n    b\n  quota: 5\n", []Tenant{{"a b", 5, 3}}, nil},
		{"name with slash and colon", head + "- name: ../x:y z\n  quota: 5\n", []Tenant{{"../x:y z", 5, 3}}, nil},
		{"literal quota", head + "- name: a\n  quota: |-\n    5GB\n", []Tenant{{"a", 5 << 30, 3}}, nil},
		{"an anchor inside itself", "version: 1\nloop: &l [*l]\ntenants: []\n", nil, []string{"line 2: unknown key 'loop' is ignored"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := Parse([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(doc.Tenants) != fmt.Sprint(tt.want) {
				t.Errorf("tenants %v, want %v", doc.Tenants, tt.want)
			}
			var got []string
			for _, w := range doc.Warnings {
				got = append(got, w.String())
			}
			if strings.Join(got, "\n") != strings.Join(tt.warnings, "\n") {
				t.Errorf("warnings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.warnings, "\n"))
			}
		})
	}
}

func utf16(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteByte(c)
		b.WriteByte(0)
	}
	return b.String()
}

// TestParseRefuses reads every document of testdata/policy/bad.
func TestParseRefuses(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "policy", "bad")
	index, err := os.ReadFile(filepath.Join(dir, "INDEX"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range strings.Split(strings.TrimSpace(string(index)), "\n") {
		name, want, _ := strings.Cut(row, "\t")
		listed[name+".yaml"] = true
		text, err := os.ReadFile(filepath.Join(dir, name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Parse(text)
		if err == nil || err.Error() != want || doc != nil {
			t.Errorf("%s: %v\nwant: %s", name, err, want)
		}
		var e *Error
		if !errors.As(err, &e) || e.Line < 1 {
			t.Errorf("%s: %#v has no line", name, err)
		}
		if !Blank(text) {
			if _, err := Set(text, "x", 1); err == nil || err.Error() != want {
				t.Errorf("%s: an edit of a bad document: %v", name, err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) != len(listed) || len(files) < 200 {
		t.Errorf("%d files, %d listed, %v", len(files), len(listed), err)
	}
}

func TestParseLimits(t *testing.T) {
	_, err := Parse(bytes.Repeat([]byte(" "), MaxSize+1))
	if err == nil || err.Error() != "tenant quota policy has 67108865 bytes (at most 67108864 are accepted)" {
		t.Errorf("too large: %v", err)
	}
	var many strings.Builder
	many.WriteString("version: 1\ntenants: []\n")
	for i := range 250 {
		fmt.Fprintf(&many, "k%d: 1\n", i)
	}
	doc, err := Parse([]byte(many.String()))
	if err != nil || len(doc.Warnings) != maxWarnings+1 || doc.Warnings[maxWarnings].Message != "150 more warnings" {
		t.Errorf("%v, %d warnings", err, len(doc.Warnings))
	}
	// Aliases of aliases: a reader that expanded them would see 10^9 elements.
	bomb := "version: 1\na: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	if _, err := Parse([]byte(bomb + "tenants: *i\n")); err == nil || err.Error() != "line 10: tenant entry must be a YAML map (expected the keys name and quota)" {
		t.Errorf("alias bomb: %v", err)
	}
}

// TestReadersAgree reads the same documents with both readers.
func TestReadersAgree(t *testing.T) {
	plainOnes := []string{
		"version: 1\ntenants:\n  - name: a\n    quota: 5\n",
		"version: 1\ntenants:\n- name: \"a b\"\n  quota: '5GB' # c\n\n-   quota: 7KB\n    name: x-y_z/1.2\n",
		"# c\r\nversion: \"1\"\r\n\r\ntenants:   # all\r\n    # one\r\n    - name: 'a # b'\r\n      quota: 12B",
		string(Print([]Tenant{{Name: "a", Quota: 1}, {Name: "b:c", Quota: 2}})),
	}
	for _, text := range plainOnes {
		fast, fastPlaces, ok := readPlain([]byte(text))
		if !ok {
			t.Fatalf("%q is not read as plain", text)
		}
		slow, slowPlaces, err := readTree([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(fast) != fmt.Sprint(slow) {
			t.Errorf("%q:\nplain %v\ntree  %v", text, fast, slow)
		}
		slowPlaces.plain = true
		if fmt.Sprint(fastPlaces) != fmt.Sprint(slowPlaces) {
			t.Errorf("%q:\nplain %v\ntree  %v", text, fastPlaces, slowPlaces)
		}
	}
}

func TestPrint(t *testing.T) {
	got := Print([]Tenant{{Name: "tenant b", Quota: 1048576}, {Name: "a", Quota: 5}})
	want := "version: 1\n\ntenants:\n  - name: \"a\"\n    quota: 5\n  - name: \"tenant b\"\n    quota: 1048576\n"
	if string(got) != want {
		t.Errorf("%q", got)
	}
	if got := Print(nil); string(got) != "version: 1\n\ntenants: []\n" {
		t.Errorf("empty: %q", got)
	}
	name := "\\\"\x00\a\b\t\n\v\f\r\x01\x1f\x7fé\u0085\u2028\ufeff\U0001f600"
	if got, want := string(appendName(nil, name)), `"\\\"\0\a\b\t\n\v\f\r\x01\x1F\x7Fé\u0085\u2028\uFEFF😀"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, name := range []string{"é", "\u0085", "\u2028x", "\ufeff", "\U0001f600", "a\u00a0b", "\u0080", "a\\b\"c'd", " lead", "trail ", "# x", "null", "~", "\u009f\ufffe"} {
		doc, err := Parse(Print([]Tenant{{Name: name, Quota: 9}}))
		if err != nil || len(doc.Tenants) != 1 || doc.Tenants[0].Name != name {
			t.Errorf("%q comes back as %v, %v", name, doc, err)
		}
	}
}

func BenchmarkParse100000(b *testing.B) {
	var set []Tenant
	for i := range 100_000 {
		set = append(set, Tenant{Name: fmt.Sprintf("tenant-%06d", i), Quota: uint64(i) + 1})
	}
	text := Print(set)
	for name, read := range map[string]func([]byte) error{
		"plain": func(text []byte) error { _, err := Parse(text); return err },
		"yaml":  func(text []byte) error { _, _, err := readTree(text); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := read(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

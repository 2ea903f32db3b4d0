package admin

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
)

// recorded returns the lines of a file under testdata/http: a quoted request body, a tab, and
// what a released master answered.
func recorded(t testing.TB, name string) [][2]string {
	t.Helper()
	content, err := os.ReadFile("../../testdata/http/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out [][2]string
	for _, line := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
		quoted, answer, ok := strings.Cut(line, "\t")
		body, err := strconv.Unquote(quoted)
		if !ok || err != nil {
			t.Fatalf("%s: bad line %s", name, line)
		}
		out = append(out, [2]string{body, answer})
	}
	return out
}

// The answers of release 0.3.13 to 166 bodies: the quota taken, or the error message.
func TestPutBodiesAsRecorded(t *testing.T) {
	for _, r := range recorded(t, "put_bodies.txt") {
		f := &fake{service: Serving(), strict: true}
		s, _ := newTestServer(t, f)
		got := ask(t, s.Handler(), "PUT /api/v1/tenant_quotas?tenant_id=tz", r[0])
		var answer struct {
			Data struct {
				Quota json.Number `json:"requested_quota_bytes"`
			} `json:"data"`
			Message string `json:"error_message"`
		}
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
			t.Errorf("%q: answer %s: %v", r[0], got.body, err)
			continue
		}
		if text := answer.Data.Quota.String() + answer.Message; text != r[1] {
			t.Errorf("%q: %s, want %s", r[0], text, r[1])
		}
		if (got.status == 200) != (answer.Message == "") || got.status != 200 && got.status != 400 {
			t.Errorf("%q: status %d", r[0], got.status)
		}
	}
}

// The answers of release 0.3.14, where no object exists, to bodies of soft_pin.
func TestSoftPinBodiesAsRecorded(t *testing.T) {
	s, _ := newTestServer(t, &fake{service: Serving(), strict: true})
	for _, r := range recorded(t, "soft_pin_bodies.txt") {
		if got := ask(t, s.Handler(), "POST /api/v1/soft_pin", r[0]); got.body != r[1] {
			t.Errorf("%q\ngot  %s\nwant %s", r[0], got.body, r[1])
		}
	}
}

func TestDeepBodies(t *testing.T) {
	s, _ := newTestServer(t, &fake{service: Serving(), strict: true})
	deep := strings.Repeat("[", 100000)
	for body, want := range map[string]int{
		`{"x":` + deep + strings.Repeat("]", 100000) + `,"requested_quota_bytes":5}`: 200,
		`{"x":` + deep: 400,
		deep:           400,
	} {
		if got := ask(t, s.Handler(), "PUT /api/v1/tenant_quotas?tenant_id=tz", body); got.status != want {
			t.Errorf("%.20s...: %d, want %d", body, got.status, want)
		}
	}
}

// Whatever the input, the reader ends and stays inside; and what is correct JSON with fields of
// the right types it reads as encoding/json does. Left out are null and escapes, where the two
// differ on purpose.
func FuzzLenient(f *testing.F) {
	for _, name := range []string{"put_bodies.txt", "soft_pin_bodies.txt"} {
		for _, r := range recorded(f, name) {
			f.Add([]byte(r[0]))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var quota uint64
		var keys []string
		var name string
		var ttl *uint64
		l := &lenient{in: in}
		err := l.object(map[string]func(){
			"requested_quota_bytes": func() { quota = l.number() },
			"keys":                  func() { keys = l.strings() },
			"tenant_id":             func() { name = l.str() },
			"ttl_ms":                func() { ttl = l.optionalNumber() },
		})
		if l.at > len(in) {
			t.Fatalf("read %d of %d bytes", l.at, len(in))
		}
		fields := map[string]json.RawMessage{}
		if json.Unmarshal(in, &fields) != nil {
			return
		}
		var strict struct {
			Quota uint64   `json:"requested_quota_bytes"`
			Keys  []string `json:"keys"`
			Name  string   `json:"tenant_id"`
			TTL   *uint64  `json:"ttl_ms"`
		}
		for field := range fields { // the library compares names without regard to case
			switch field {
			case "requested_quota_bytes", "keys", "tenant_id", "ttl_ms":
			default:
				if strings.EqualFold(field, "requested_quota_bytes") || strings.EqualFold(field, "keys") || strings.EqualFold(field, "tenant_id") || strings.EqualFold(field, "ttl_ms") {
					return
				}
			}
		}
		for _, raw := range fields {
			if string(raw) == "null" {
				return
			}
		}
		if strings.Contains(string(in), `\`) || strings.Contains(string(in), "null") || json.Unmarshal(in, &strict) != nil {
			return
		}
		if strings.ContainsRune(strict.Name+strings.Join(strict.Keys, ""), '\uFFFD') {
			return
		}
		if err != nil {
			t.Errorf("%q: refused: %v", in, err)
			return
		}
		same := quota == strict.Quota && name == strict.Name && (ttl == nil) == (strict.TTL == nil) && (ttl == nil || *ttl == *strict.TTL) &&
			strings.Join(keys, "\x00") == strings.Join(strict.Keys, "\x00")
		if !same {
			t.Errorf("%q: read %d %q %q, want %d %q %q", in, quota, keys, name, strict.Quota, strict.Keys, strict.Name)
		}
	})
}

package http

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mooncake-go/mooncake-master/sdk"
)

func TestSave(t *testing.T) {
	s := newSource(t, "")
	c := configured(t, s.URL)
	if _, err := c.Save(t.Context(), []byte("x"), `"v1" abc`); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("replacing what is not there: %v", err)
	}
	first, err := c.Save(t.Context(), []byte("one"), "")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := c.Load(t.Context())
	if err != nil || string(doc.Content) != "one" || doc.Revision != first {
		t.Fatalf("%q %q, %v; saved as %q", doc.Content, doc.Revision, err, first)
	}
	if _, err := c.Save(t.Context(), []byte("x"), ""); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("creating what is there: %v", err)
	}
	if _, err := c.Save(t.Context(), []byte("two"), first); err != nil {
		t.Errorf("replacing: %v", err)
	}
	if _, err := c.Save(t.Context(), []byte("x"), first); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("replacing an old revision: %v", err)
	}
	if string(s.content) != "two" {
		t.Errorf("the source holds %q", s.content)
	}
}

// TestSaveRace: somebody is faster between our look and our save; the server says so.
func TestSaveRace(t *testing.T) {
	s := newSource(t, "one")
	c := configured(t, s.URL)
	doc, err := c.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		s.answers(nil)
		s.ServeHTTP(w, r) // the look
		s.set("theirs")
	})
	if _, err := c.Save(t.Context(), []byte("ours"), doc.Revision); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("saved over theirs: %v", err)
	}
	if string(s.content) != "theirs" {
		t.Errorf("the source holds %q", s.content)
	}
}

// TestSaveNothingIsLost: many writers count in one document; none of their changes is lost.
func TestSaveNothingIsLost(t *testing.T) {
	s := newSource(t, "0")
	var writers sync.WaitGroup
	const each = 20
	for range 5 {
		c := configured(t, s.URL)
		writers.Go(func() {
			for done := 0; done < each; {
				doc, err := c.Load(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				var n int
				_, _ = fmt.Sscan(string(doc.Content), &n)
				_, err = c.Save(t.Context(), fmt.Append(nil, n+1), doc.Revision)
				switch {
				case err == nil:
					done++
				case !errors.Is(err, sdk.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	if string(s.content) != fmt.Sprint(5*each) {
		t.Errorf("the count is %s, want %d", s.content, 5*each)
	}
}

// TestSaveAnswers: what each answer to PUT means.
func TestSaveAnswers(t *testing.T) {
	cases := []struct {
		code int
		want error // or nil for *sdk.Unavailable
		kind sdk.Kind
	}{
		{412, sdk.ErrConflict, 0},
		{409, sdk.ErrConflict, 0},
		{405, sdk.ErrReadOnly, 0},
		{501, sdk.ErrReadOnly, 0},
		{202, nil, sdk.Unreachable},
		{301, nil, sdk.Unreachable},
		{400, nil, sdk.Unreachable},
		{401, nil, sdk.Auth},
		{403, nil, sdk.Auth},
		{404, nil, sdk.Absent},
		{413, nil, sdk.Invalid},
		{429, nil, sdk.Unreachable},
		{500, nil, sdk.Unreachable},
		{503, nil, sdk.Unreachable},
	}
	for _, k := range cases {
		s := newSource(t, "one")
		c := configured(t, s.URL)
		doc, err := c.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.answers(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(k.code)
				return
			}
			w.Header().Set("ETag", `"v1"`)
			_, _ = w.Write([]byte("one"))
		})
		_, err = c.Save(t.Context(), []byte("two"), doc.Revision)
		var why *sdk.Unavailable
		switch {
		case k.want != nil && !errors.Is(err, k.want), k.want == nil && (!errors.As(err, &why) || why.Kind != k.kind):
			t.Errorf("%d: %v", k.code, err)
		case !strings.Contains(err.Error(), s.URL):
			t.Errorf("%d: %v does not name the source", k.code, err)
		}
	}
}

// TestSaveWithoutAnAnswer: the connection breaks when the document may or may not be stored.
// What is said is what the source holds.
func TestSaveWithoutAnAnswer(t *testing.T) {
	for _, stored := range []bool{true, false} {
		s := newSource(t, "one")
		c := configured(t, s.URL)
		doc, err := c.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.answers(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				s.answers(nil)
				if content, err := io.ReadAll(r.Body); err == nil && stored {
					s.set(string(content))
				}
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("ETag", `"v1"`)
			_, _ = w.Write([]byte("one"))
		})
		revision, err := c.Save(t.Context(), []byte("two"), doc.Revision)
		if stored != (err == nil) {
			t.Errorf("stored %v, but Save says %v", stored, err)
		}
		if now, loadErr := c.Load(t.Context()); loadErr != nil || stored && now.Revision != revision {
			t.Errorf("revision %q, the source has %q, %v", revision, now.Revision, loadErr)
		}
	}
}

// TestSaveIsRefused where it would not be safe.
func TestSaveIsRefused(t *testing.T) {
	for name, etag := range map[string]string{"weak": `W/"1"`, "none": ""} {
		s := newSource(t, "one")
		s.answers(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				t.Errorf("%s: it is sent all the same", name)
			}
			if etag != "" {
				w.Header().Set("ETag", etag)
			}
			_, _ = w.Write([]byte("one"))
		})
		c := configured(t, s.URL)
		doc, err := c.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Save(t.Context(), []byte("two"), doc.Revision); !errors.Is(err, sdk.ErrReadOnly) || !strings.Contains(err.Error(), "strong ETag") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := newSource(t, "one")
	c := configured(t, s.URL, "save=off")
	doc, _ := c.Load(t.Context())
	if _, err := c.Save(t.Context(), []byte("two"), doc.Revision); !errors.Is(err, sdk.ErrReadOnly) {
		t.Errorf("switched off: %v", err)
	}
	c = configured(t, s.URL, "max_bytes=10")
	if _, err := c.Save(t.Context(), []byte("eleven byte"), doc.Revision); err == nil || !strings.Contains(err.Error(), "max_bytes") {
		t.Errorf("too large: %v", err)
	}
	if string(s.content) != "one" {
		t.Errorf("the source holds %q", s.content)
	}
}

// TestSaveWhereThePutNamesNoETag: its revision is the one that Load gives.
func TestSaveWhereThePutNamesNoETag(t *testing.T) {
	s := newSource(t, "one")
	c := configured(t, s.URL)
	doc, err := c.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			s.answers(nil)
			content, _ := io.ReadAll(r.Body)
			s.set(string(content))
			w.WriteHeader(http.StatusCreated)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		_, _ = w.Write([]byte("one"))
	})
	revision, err := c.Save(t.Context(), []byte("two"), doc.Revision)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := c.Load(t.Context()); err != nil || now.Revision != revision {
		t.Errorf("saved as %q, the source has %q, %v", revision, now.Revision, err)
	}
}

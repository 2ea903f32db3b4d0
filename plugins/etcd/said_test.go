package etcd

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// said is a log.
type said struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *said) Write(p []byte) (int, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.b.Write(p) }

func (s *said) lines(part string) (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(s.b.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// TestWhatIsReadIsSaid looks for the line by which a wrong cluster id is found: the full key and
// its revision, or that there is no such key, as a warning; each once.
func TestWhatIsReadIsSaid(t *testing.T) {
	var log said
	c := New(hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Info}))
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := c.Configure(t.Context(), sdk.Config{URI: shared.client, ClusterID: clusterOf(t)}); err != nil {
		t.Fatal(err)
	}
	if got := log.lines("key=" + keyOf(t)); len(got) != 1 || !strings.Contains(got[0], "is kept in etcd") {
		t.Errorf("configured: %q", got)
	}
	for range 2 {
		if _, err := c.Load(t.Context()); err == nil {
			t.Fatal("there is something")
		}
	}
	got := log.lines("the key does not exist; a wrong cluster_id looks the same")
	if len(got) != 1 || !strings.Contains(got[0], "[WARN]") || !strings.Contains(got[0], "key="+keyOf(t)) || !strings.Contains(got[0], "at_revision=") {
		t.Errorf("absent: %q", got)
	}
	put(t, operator(t, shared.client), keyOf(t), "one")
	for range 2 {
		if _, err := c.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := log.lines("read the tenant quota policy from etcd"); len(got) != 1 || !strings.Contains(got[0], "key="+keyOf(t)) || !strings.Contains(got[0], "mod_revision=") {
		t.Errorf("present: %q", got)
	}
}

// TestPauses holds the attempts after failures apart: at random, longer and longer, up to a bound.
func TestPauses(t *testing.T) {
	var p pauses
	var different bool
	before := time.Duration(-1)
	for n := range 100 {
		bound := silent
		if n < 8 {
			bound = pauseFirst << n
		}
		d := p.next(silent)
		if d < 0 || d >= bound {
			t.Fatalf("pause %d: %s, want less than %s", n, d, bound)
		}
		different = different || before >= 0 && d != before
		before = d
	}
	if !different {
		t.Error("all pauses are the same: masters would come back all at once")
	}
}

package connector

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/policy"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// book is an enforcer without tenants' objects.
type book struct {
	mu  sync.Mutex
	set []tenant.Policy
}

func (b *book) Policies() []tenant.Policy {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.set
}

func (b *book) ApplyPolicies(set []tenant.Policy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set = slices.Clone(set)
}

func (b *book) BeginRemoval(name string) errcode.Code {
	if b.quota(name) == 0 {
		return errcode.ObjectNotFound
	}
	return errcode.OK
}

func (b *book) CancelRemoval(string) {}

func (b *book) PreviewPolicies([]tenant.Policy) tenant.Preview { return tenant.Preview{} }

func (b *book) quota(name string) uint64 {
	for _, p := range b.Policies() {
		if p.Name == name {
			return p.Quota
		}
	}
	return 0
}

// managed runs a real connector process under a policy manager.
func managed(t *testing.T, path string, log *logged) (*policy.Manager, *Connector, *book) {
	t.Helper()
	c := started(t, path, log)
	b := &book{}
	m := policy.New(policy.Deps{Source: c, Enforcer: b, Clock: wall{}, Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: log})})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, c, b
}

// TestPutsRaceHandEdits lets an operator edit the file by hand, fifty times, while fifty
// changes come through the admin interface. No hand edit is lost, every change is in the file
// or was counted as overwritten, and the comments stay.
func TestPutsRaceHandEdits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "# Ask before you edit.\nversion: 1\ntenants:\n  - name: operator # by hand\n    quota: 1\n")
	var log logged
	m, _, b := managed(t, path, &log)
	const n = 50
	byHand := make(chan error, 1)
	go func() {
		for i := 1; i <= n; i++ {
			text, err := os.ReadFile(path)
			time.Sleep(time.Duration(i%4*5) * time.Millisecond) // thinking
			if err == nil {
				edited := strings.Replace(string(text), fmt.Sprintf("by hand\n    quota: %d\n", i), fmt.Sprintf("by hand\n    quota: %d\n", i+1), 1)
				if edited == string(text) {
					err = fmt.Errorf("hand edit %d: the one before is lost:\n%s", i, text)
				} else if err = os.WriteFile(path+".mine", []byte(edited), 0o644); err == nil {
					err = os.Rename(path+".mine", path)
				}
			}
			if err != nil {
				byHand <- err
				return
			}
			time.Sleep(time.Duration(i%5) * time.Millisecond)
		}
		byHand <- nil
	}()
	for i := range n {
		if err := m.Put(t.Context(), fmt.Sprintf("tenant-%d", i), uint64(1000+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-byHand; err != nil {
		t.Fatal(err)
	}
	text := mustRead(t, path)
	if !strings.HasPrefix(text, "# Ask before you edit.\n") || !strings.Contains(text, fmt.Sprintf("operator # by hand\n    quota: %d\n", n+1)) {
		t.Errorf("the file says:\n%s", text)
	}
	doc, err := policydoc.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	there := len(doc.Tenants) - 1
	eventually(t, "the file in force and all overwritten changes counted", func() bool {
		return len(b.Policies()) == there+1 && b.quota("operator") == n+1 && there+int(m.Status().OverwrittenSaves) == n
	})
	if got := strings.Count(log.String(), "was overwritten at the source"); got != int(m.Status().OverwrittenSaves) {
		t.Errorf("%d warnings, %d counted", got, m.Status().OverwrittenSaves)
	}
	t.Logf("%d in the file, %d overwritten", there, m.Status().OverwrittenSaves)
}

// TestPutsWhileKilled changes quotas while the connector is killed again and again: no change
// fails, and all are in the file.
func TestPutsWhileKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "version: 1\ntenants: []\n")
	var log logged
	m, c, b := managed(t, path, &log)
	stop, ended := make(chan struct{}), make(chan int)
	go func() {
		kills := 0
		defer func() { ended <- kills }()
		for {
			select {
			case <-stop:
				return
			case <-time.After(30 * time.Millisecond):
			}
			if pid := c.pid(); pid > 1 && syscall.Kill(pid, syscall.SIGKILL) == nil {
				kills++
			}
		}
	}()
	const n = 40
	for i := range n {
		name := fmt.Sprintf("tenant-%d", i%8)
		var err error
		if i%5 == 4 && b.quota(name) != 0 {
			err = m.Delete(t.Context(), name)
		} else {
			err = m.Put(t.Context(), name, uint64(i+1))
		}
		if err != nil {
			t.Errorf("change %d: %v", i, err)
		}
	}
	close(stop)
	if kills := <-ended; kills < 5 {
		t.Errorf("only %d kills", kills)
	}
	doc, err := policydoc.Parse([]byte(mustRead(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range doc.Tenants {
		if b.quota(in.Name) != in.Quota {
			t.Errorf("%s: %d in force, %d in the file", in.Name, b.quota(in.Name), in.Quota)
		}
	}
	if len(doc.Tenants) != len(b.Policies()) {
		t.Errorf("%d in the file, %d in force", len(doc.Tenants), len(b.Policies()))
	}
	eventually(t, "ready", func() bool { return m.Status().State == policy.Ready })
	if s := m.Status(); s.OverwrittenSaves != 0 {
		t.Errorf("%+v", s)
	}
	// What a killed save leaves is cleaned up by the next process.
	kill(t, c.pid(), syscall.SIGKILL)
	eventually(t, "nothing lies about", func() bool {
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".mooncake-policy-*"))
		return len(left) == 0
	})
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestLastGoodStays takes the file through every bad state; the last good policy stays.
func TestLastGoodStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	const good = "version: 1\ntenants:\n- name: a\n  quota: 5\n"
	write(t, path, good)
	var log logged
	m, _, b := managed(t, path, &log)
	state := func(want string) func() bool { return func() bool { return m.Status().State == want } }
	eventually(t, "ready", state(policy.Ready))
	bad := []struct {
		name, reason string
		make         func()
	}{
		{"broken", "invalid_document", func() { write(t, path, "version: 1\ntenants: [\n") }},
		{"zero bytes", "empty", func() { write(t, path, "") }},
		{"half written", "invalid_document", func() { write(t, path, good[:len(good)-10]) }},
		{"gone", "absent", func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}},
		{"a folder", "invalid", func() {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}},
	}
	before := time.Now()
	for _, tt := range bad {
		tt.make()
		eventually(t, tt.name, func() bool { return m.Status().ReloadFailures[tt.reason] > 0 && m.Status().State == policy.Degraded })
		if b.quota("a") != 5 || len(b.Policies()) != 1 {
			t.Errorf("%s: in force %v", tt.name, b.Policies())
		}
	}
	s := m.Status()
	if s.Since.Before(before) || s.LastError == "" || s.ReloadSuccesses != 1 || s.Tenants != 1 || s.ContentHash == "" {
		t.Errorf("%+v", s)
	}
	if err := m.Put(t.Context(), "b", 6); err == nil {
		t.Error("a change of a folder succeeded")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(t, path, good)
	eventually(t, "ready", state(policy.Ready))
	write(t, path, "version: 1\ntenants: []\n")
	eventually(t, "empty", func() bool { return len(b.Policies()) == 0 })
	// Gone again: a change makes the file anew.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "degraded", state(policy.Degraded))
	if err := m.Put(t.Context(), "b", 6); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, path); got != "version: 1\n\ntenants:\n  - name: \"b\"\n    quota: 6\n" {
		t.Errorf("made anew: %q", got)
	}
	eventually(t, "ready", state(policy.Ready))
}

// TestStartWithBadDocument shows the one line that a master ends with.
func TestStartWithBadDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	for _, tt := range []struct{ text, want string }{
		{"", "failed to open tenant quota policy file '" + path + "': no such file or directory"},
		{
			"version: 1\ntenants:\n- name: a\n  quota: 5GiB\n",
			"line 4: invalid quota for tenant 'a': unsupported quota unit 'GiB' (a whole number, optionally followed directly by B, KB, MB, GB or TB in powers of 1024)",
		},
	} {
		if tt.text != "" {
			write(t, path, tt.text)
		}
		var log logged
		c := started(t, path, &log)
		m := policy.New(policy.Deps{Source: c, Enforcer: &book{}, Clock: wall{}, Logger: hclog.NewNullLogger()})
		err := m.Start(t.Context())
		if err == nil || err.Error() != "--tenant_quota_connector_uri="+path+": failed to load tenant quota policy: "+tt.want {
			t.Errorf("%v", err)
		}
		m.Close()
	}
}

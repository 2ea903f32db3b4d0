package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// diary is a core.Events that writes everything down.
type diary struct{ lines []string }

func (d *diary) note(what, tenantName, key, group, medium string) {
	d.lines = append(d.lines, strings.TrimRight(fmt.Sprintf("%s %s/%s %s %s", what, tenantName, strings.Clone(key), medium, strings.Clone(group)), " "))
}
func (d *diary) Stored(t, k, g, m string)  { d.note("stored", t, k, g, m) }
func (d *diary) Removed(t, k, g, m string) { d.note("removed", t, k, g, m) }
func (d *diary) Cleared(t string)          { d.lines = append(d.lines, "cleared "+t) }

// said returns what was written down since the last call.
func (d *diary) said() string {
	text := strings.Join(d.lines, ", ")
	d.lines = nil
	return text
}

// observed makes a master of which everything is written down.
func observed(t *testing.T, change ...func(*core.Config)) (*core.Master, *mastertest.Clock, *diary) {
	t.Helper()
	cfg := core.Default()
	cfg.EvictionWatermark, cfg.AllocationWait = 1, 0
	for _, f := range change {
		f(&cfg)
	}
	clock, d := mastertest.NewClock(), new(diary)
	m, err := core.New(cfg, core.Deps{Clock: clock, Rand: mastertest.NewRand(1), Log: hclog.NewNullLogger(), Events: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Check(); err != nil {
			t.Error(err)
		}
	})
	info := mastertest.Segment(1, "s1", 1<<20)
	if code := m.MountSegment(info, mastertest.ID(1)); code != errcode.OK {
		t.Fatal(code)
	}
	m.Ping(mastertest.ID(1))
	return m, clock, d
}

func TestEventsOfAnObject(t *testing.T) {
	m, clock, d := observed(t)
	put := func(key string, size uint64, change ...func(*object.ReplicateConfig)) {
		t.Helper()
		if _, code := m.PutStart(mastertest.ID(1), "default", key, size, mastertest.Config(change...), nil); code != errcode.OK {
			t.Fatal(code)
		}
	}
	end := func(key string) {
		t.Helper()
		if code := m.PutEnd(mastertest.ID(1), "default", &object.Meta{Key: key}, object.ReplicaAll); code != errcode.OK {
			t.Fatal(code)
		}
	}
	upsert := func(key string, size uint64) {
		t.Helper()
		if _, code := m.UpsertStart(mastertest.ID(1), "default", key, size, mastertest.Config(), nil); code != errcode.OK {
			t.Fatal(code)
		}
	}
	expect := func(what, want string) {
		t.Helper()
		if got := d.said(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	grouped := func(c *object.ReplicateConfig) { c.GroupIDs = &[]string{"g"} }

	put("a", 100, grouped)
	expect("a write that begins", "")
	end("a")
	expect("a write that ends", "stored default/a cpu g")
	end("a")
	expect("an end again", "")
	upsert("a", 100)
	expect("a write in place", "removed default/a cpu g")
	end("a")
	expect("its end", "stored default/a cpu g")
	upsert("a", 200)
	expect("a write of another size", "removed default/a cpu g")
	end("a")
	expect("its end", "stored default/a cpu g")

	put("b", 100)
	if code := m.PutRevoke(mastertest.ID(1), "default", "b", object.ReplicaAll); code != errcode.OK {
		t.Fatal(code)
	}
	expect("a write taken back", "")
	put("b", 100)
	clock.Set(700 * time.Second)
	m.Ping(mastertest.ID(1))
	m.Step()
	expect("a write given up", "")

	if code := m.Remove("default", "a", true); code != errcode.OK {
		t.Fatal(code)
	}
	expect("a removal", "removed default/a cpu g")
	for _, key := range []string{"c", "d", "e"} {
		put(key, 100)
		end(key)
	}
	d.said()
	m.BatchRemove("default", []string{"c", "x"}, true, nil)
	expect("a removal of some", "removed default/c cpu")
	if n, code := m.RemoveByRegex("default", "^d$", true); n != 1 || code != errcode.OK {
		t.Fatal(n, code)
	}
	expect("a removal by pattern", "removed default/d cpu")
	m.UnmountSegment(mastertest.Segment(1, "s1", 1<<20).ID, mastertest.ID(1))
	expect("the loss of a segment", "removed default/e cpu")
}

func TestEventsOfRemoveAll(t *testing.T) {
	m, clock, d := observed(t)
	put := func(key string) {
		t.Helper()
		if _, code := m.PutStart(mastertest.ID(1), "default", key, 100, mastertest.Config(), nil); code != errcode.OK {
			t.Fatal(code)
		}
		if code := m.PutEnd(mastertest.ID(1), "default", &object.Meta{Key: key}, object.ReplicaAll); code != errcode.OK {
			t.Fatal(code)
		}
	}
	sorted := func() string {
		cleared := len(d.lines) > 0 && d.lines[len(d.lines)-1] == "cleared default"
		if cleared {
			d.lines = d.lines[:len(d.lines)-1]
		}
		slices.Sort(d.lines)
		if cleared {
			d.lines = append(d.lines, "cleared default")
		}
		return d.said()
	}
	m.RemoveAll("default", true)
	if got := sorted(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	put("a")
	put("b")
	d.said()
	clock.Set(time.Second)
	var list object.ReplicaList
	if code := m.GetReplicaList("default", "a", &list); code != errcode.OK {
		t.Fatal(code)
	}
	m.RemoveAll("default", false)
	if got := sorted(); got != "removed default/b cpu" {
		t.Errorf("with one leased: %q", got)
	}
	put("c")
	d.said()
	m.RemoveAll("default", true)
	if got := sorted(); got != "removed default/a cpu, removed default/c cpu, cleared default" {
		t.Errorf("of everything: %q", got)
	}
}

func TestEventsOfEviction(t *testing.T) {
	m, clock, d := observed(t, func(c *core.Config) { c.EvictionWatermark = 0.5 })
	for i := range 8 {
		key := fmt.Sprint("k", i)
		if _, code := m.PutStart(mastertest.ID(1), "default", key, 64<<10, mastertest.Config(), nil); code != errcode.OK {
			t.Fatal(code)
		}
		if code := m.PutEnd(mastertest.ID(1), "default", &object.Meta{Key: key}, object.ReplicaAll); code != errcode.OK {
			t.Fatal(code)
		}
		clock.Set(time.Millisecond)
	}
	d.said()
	m.PutStart(mastertest.ID(1), "default", "last", 64<<10, mastertest.Config(), nil)
	m.PutEnd(mastertest.ID(1), "default", &object.Meta{Key: "last"}, object.ReplicaAll)
	m.Step()
	if got := d.said(); got != "stored default/last cpu, removed default/k0 cpu, removed default/k1 cpu" {
		t.Errorf("%q", got)
	}
}

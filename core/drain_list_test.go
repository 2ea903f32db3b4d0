package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

// counting is a randomness that gives every task an id of its own.
type counting struct{ n uint64 }

func (c *counting) Uint64N(n uint64) uint64 { c.n++; return c.n % n }

// TestDrainOfMoreThanIsListed drains more objects than a job keeps in mind, of which as many as it lists are
// in use at first; the others must not wait for those.
func TestDrainOfMoreThanIsListed(t *testing.T) {
	clock := &still{int64(time.Hour)}
	m, err := New(Default(), Deps{Clock: clock, Rand: &counting{}, Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	alice, bob := segment.UUID{First: 1}, segment.UUID{First: 2}
	for who, name := range map[segment.UUID]string{alice: "a", bob: "b"} {
		info := segment.Info{ID: who, Name: name, Base: 1 << 32, Size: 1 << 30, Endpoint: name}
		if code := m.MountSegment(info, who); code != errcode.OK {
			t.Fatal(code)
		}
	}
	const free = 1000
	config := object.ReplicateConfig{ReplicaNum: 1, PreferredSegments: []string{"a"}}
	put := func(key string) {
		if _, code := m.PutStart(alice, "", key, 100, &config, nil); code != errcode.OK {
			t.Fatal(code)
		}
		m.PutEnd(alice, "", &object.Meta{Key: key}, object.ReplicaAll)
	}
	key := func(i int) string { return fmt.Sprint("k", i) }
	for i := range drainList + free {
		put(key(i))
	}
	id, code := m.CreateDrainJob(drain.Request{Segments: []string{"a"}, Concurrency: 1 << 20})
	if code != errcode.OK {
		t.Fatal(code)
	}
	// Leases for those that will be listed: all but the last ones in the order in which they are found.
	all, at := 0, m.single
	for i := range at.space.Shards() {
		sh := &at.space.Shards()[i]
		sh.Each(func(o *object.Object) {
			if all++; all <= drainList+free-100 {
				o.ExtendLease(clock.now + int64(time.Hour))
			}
		})
	}
	moved := 0
	step := func() drain.Report {
		clock.now += 500 * 1e6
		m.stepDrains()
		list, _ := m.FetchTasks(alice, 1<<20)
		for _, a := range list {
			m.MarkTaskToComplete(alice, task.Completion{ID: a.ID, Status: task.Failed})
		}
		moved += len(list)
		r, _ := m.QueryDrainJob(id)
		return r
	}
	r := step()
	if r.Total != drainList+free || r.Remaining != r.Total || r.Blocked < drainList {
		t.Errorf("%+v", r)
	}
	for range 30 {
		step()
	}
	if moved < 100 {
		t.Errorf("%d moves were asked for, of 100 objects that are not in use", moved)
	}
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// mover is client 1 of a master: it has segment a with objects, and moves what it is asked to. Client
// 2 has segment b.
type mover struct {
	c      *rpc.Client
	idle   atomic.Bool // don't do what is asked for
	status atomic.Int32
}

func clientID(n uint64) segment.UUID { return segment.UUID{First: n, Second: n} }

func newMover(t *testing.T, address string, objects int) *mover {
	t.Helper()
	c, err := rpc.Dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	m := &mover{c: c}
	m.status.Store(int32(task.Success))
	for i, name := range []string{"a", "b"} {
		id := clientID(uint64(i + 1))
		info := segment.Info{ID: id, Name: name, Base: 1 << 32, Size: 1 << 30, Endpoint: name, Protocol: "tcp"}
		if code := call(t, c, wire.MountSegment, wire.MountSegmentRequest{Segment: info, ClientID: id}).Code; code != errcode.OK {
			t.Fatal(code)
		}
		if code := call(t, c, wire.ReMountSegment, wire.ReMountSegmentRequest{Segments: []segment.Info{info}, ClientID: id}).Code; code != errcode.OK {
			t.Fatal(code)
		}
	}
	for i := range objects {
		key := fmt.Sprint("k", i)
		q := wire.PutStartRequest{ClientID: clientID(1), Key: key, SliceLength: 1 << 20, Config: object.ReplicateConfig{ReplicaNum: 1, PreferredSegments: []string{"a"}}, TenantID: "default"}
		if code := call(t, c, wire.PutStart, q).Code; code != errcode.OK {
			t.Fatal(code)
		}
		if code := call(t, c, wire.PutEnd, wire.PutEndRequest{ClientID: clientID(1), ObjectMeta: object.Meta{Key: key}, ReplicaType: object.ReplicaAll, TenantID: "default"}).Code; code != errcode.OK {
			t.Fatal(code)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			if !m.idle.Load() {
				m.work(ctx)
			}
		}
	})
	t.Cleanup(func() { stop(); wg.Wait(); c.Close() })
	return m
}

func (m *mover) work(ctx context.Context) {
	var list errcode.Result[[]wire.TaskAssignment]
	if rpc.Invoke(ctx, m.c, wire.FetchTasks, &wire.FetchTasksRequest{ClientID: clientID(1), BatchSize: 16}, &list) != nil {
		return
	}
	for _, a := range list.Value {
		var p task.MovePayload
		if json.Unmarshal([]byte(a.Payload), &p) != nil {
			continue
		}
		status := task.Status(m.status.Load())
		if status == task.Success {
			var plan errcode.Result[wire.MovePlan]
			var end errcode.Result[errcode.Void]
			_ = rpc.Invoke(ctx, m.c, wire.MoveStart, &wire.MoveStartRequest{ClientID: clientID(1), Key: p.Key, TenantID: p.TenantID, SrcSegment: p.Source, TgtSegment: p.Target}, &plan)
			_ = rpc.Invoke(ctx, m.c, wire.MoveEnd, &wire.MoveEndRequest{ClientID: clientID(1), Key: p.Key, TenantID: p.TenantID}, &end)
			if plan.Code != errcode.OK || end.Code != errcode.OK {
				status = task.Failed
			}
		}
		var done errcode.Result[errcode.Void]
		_ = rpc.Invoke(ctx, m.c, wire.MarkTaskToComplete, &wire.MarkTaskToCompleteRequest{ClientID: clientID(1), Request: wire.TaskCompletion{ID: a.ID, Status: status}}, &done)
	}
}

func TestDrainToTheEnd(t *testing.T) {
	t.Parallel()
	address, admin := master(t)
	newMover(t, address, 20)
	r := ctl(t, "", "drain", "start", "a", "--target", "b", "--concurrency", "16", "--master", admin)
	r.want(t, exitOK, "SUCCEEDED", "SUCCEEDED 20/20 objects, 20MB, 0 moving")
	r.want(t, exitOK, "20/20", "RUNNING")
	jobs := decode[[]drainJob](t, ctl(t, "", "drain", "list", "-o", "json", "--master", admin))
	if len(jobs) != 1 || jobs[0].Succeeded != 20 || jobs[0].Bytes != 20<<20 || jobs[0].Concurrency != 16 || jobs[0].Targets[0] != "b" || !jobs[0].over() {
		t.Errorf("%+v", jobs)
	}
	ctl(t, "", "drain", "list", "--master", admin).want(t, exitOK, "JOB", "")
	job := decode[drainJob](t, ctl(t, "", "drain", "watch", jobs[0].ID, "-o", "json", "--master", admin))
	if job.Status != "SUCCEEDED" {
		t.Errorf("%+v", job)
	}
	ctl(t, "", "drain", "cancel", jobs[0].ID, "--master", admin).want(t, exitFailed, "", "is over")
	ctl(t, "", "drain", "start", "a", "--master", admin).want(t, exitFailed, "", "being drained or unmounted already")
	ctl(t, "", "drain", "start", "b", "b", "--master", admin).want(t, exitFailed, "", "named twice")
	ctl(t, "", "drain", "start", "nope", "--master", admin).want(t, exitFailed, "", "not mounted")
	ctl(t, "", "drain", "status", "1-2", "--master", admin).want(t, exitFailed, "", `there is no job "1-2"`)
	ctl(t, "", "drain", "status", "x", "--master", admin).want(t, exitUsage, "", `"x" is no job`)
	ctl(t, "", "drain", "start", "b", "--concurrency", "0", "--master", admin).want(t, exitUsage, "", "1 or more")
	ctl(t, "", "drain", "watch", "--master", admin).want(t, exitUsage, "", "want: mooncakectl drain watch JOB")
}

// TestDrainDetachAndCancel interrupts a watch, comes back, and cancels while objects are being moved.
func TestDrainDetachAndCancel(t *testing.T) {
	t.Parallel()
	address, admin := master(t)
	m := newMover(t, address, 40)
	m.idle.Store(true)
	job := decode[drainJob](t, ctl(t, "", "drain", "start", "a", "--detach", "-o", "json", "--master", admin))
	if job.Status != "CREATED" && job.Status != "RUNNING" || job.Concurrency != 4 {
		t.Errorf("%+v", job)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	watched := make(chan result, 1)
	go func() {
		watched <- ctlContext(ctx, nil, strings.NewReader(""), "drain", "watch", job.ID, "--master", admin)
	}()
	eventually(t, "moves are under way", func() bool {
		return decode[drainJob](t, ctl(t, "", "drain", "status", job.ID, "-o", "json", "--master", admin)).Active == 4
	})
	interrupt()
	(<-watched).want(t, exitInterrupted, "", "mooncakectl drain watch "+job.ID)

	ctl(t, "", "drain", "cancel", job.ID, "--detach", "--master", admin).want(t, exitOK, "is being canceled", "")
	m.idle.Store(false)
	ctl(t, "", "drain", "cancel", job.ID, "--master", admin).want(t, exitOK, "CANCELED", "")
	ctl(t, "", "drain", "watch", job.ID, "--master", admin).want(t, exitFailed, "CANCELED", "was canceled")
	job = decode[drainJob](t, ctl(t, "", "drain", "status", job.ID, "-o", "json", "--master", admin))
	if job.Succeeded != 4 || job.Remaining != 36 || job.Total != 40 {
		t.Errorf("%+v", job)
	}
	// Segments take objects again, so that another job can begin; that one fails.
	m.status.Store(int32(task.Failed))
	ctl(t, "", "drain", "start", "a", "--concurrency", "64", "--master", admin).want(t, exitFailed, "FAILED", "36 objects could not be moved")
}

// TestDrainBar shows a person a bar, and that the job goes on when the master was away.
func TestDrainBar(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		job := drainJob{ID: "1-2", Segments: []string{"a"}, Targets: []string{}, Status: "RUNNING", Created: 1000, Updated: 61000, Total: 200, Remaining: 150, Bytes: 3 << 30, Active: 4, Blocked: 2, Failed: 1}
		switch asked.Add(1) {
		case 1:
			job.Total, job.Remaining, job.Updated = 0, 0, 1000
		case 3:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case 4, 5:
			job.Status, job.Remaining, job.Active, job.Blocked = "SUCCEEDED", 0, 0, 0
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"success": true, "data": []drainJob{job}})
	}))
	defer server.Close()
	code, seen := atTerminal(t, "", nil, "drain", "watch", "1-2", "--master", strings.TrimPrefix(server.URL, "http://"))
	for _, want := range []string{
		"a: looking for what is there", "25%", "(50/200)", "3GB, 4 moving, 2 waiting, 1 failure, about 3m0s left",
		"100%", "(200/200)", "SUCCEEDED",
	} {
		if code != 0 || !strings.Contains(seen, want) {
			t.Errorf("status %d, %q is not in %q", code, want, seen)
		}
	}
	if !regexp.MustCompile(`\[=+>? *\]`).MatchString(seen) {
		t.Errorf("no bar in %q", seen)
	}
}

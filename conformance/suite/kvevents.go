package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// kvEvents subscribes to a master's events with libzmq, and compares what it prints with what was
// done to the objects.
func kvEvents(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("kv-events", flag.ContinueOnError)
	python := flags.String("python", "python3", "a Python with pyzmq and msgpack")
	script := flags.String("script", "conformance/kvevents/subscribe.py", "the subscriber")
	many := flags.Int("many", 2000, "objects that are written one after the other, besides")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	endpoint := "tcp://" + l.Addr().String()
	_ = l.Close()
	p, err := e.start(ctx, "--enable_kv_events=true", "--kv_events_bind_endpoint="+endpoint, "--kv_events_backend_id=m1", "--kv_events_model_name=model", "--kv_events_block_size=64")
	if err != nil {
		return err
	}
	defer p.kill()
	conn, err := rpc.Dial(ctx, p.rpc)
	if err != nil {
		return err
	}
	defer conn.Close()
	w := &eventWorld{conn: conn, id: segment.UUID{First: 1, Second: 1}}
	if err := w.mount(ctx); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, *python, *script, endpoint)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)

	// Whoever subscribes gets what comes from then on: a probe is written until one is seen.
	seen := make(chan error, 1)
	go func() { _, err := nextEvent(lines); seen <- err }()
	probes := 0
	for waiting := true; waiting; probes++ {
		if err := w.put(ctx, fmt.Sprint("probe", probes)); err != nil {
			return err
		}
		select {
		case err := <-seen:
			if waiting = false; err != nil {
				return err
			}
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err := w.put(ctx, "begin"); err != nil {
		return err
	}
	for {
		v, err := nextEvent(lines)
		if err != nil {
			return err
		}
		if v["object_key"] == "begin" {
			break
		}
	}

	want := []string{}
	for i := range *many {
		key := fmt.Sprint("k", i)
		if err := w.put(ctx, key); err != nil {
			return err
		}
		want = append(want, "stored "+key+" cpu")
	}
	if err := w.remove(ctx, "k0"); err != nil {
		return err
	}
	want = append(want, "removed k0 cpu")
	for i, expected := range want {
		v, err := nextEvent(lines)
		if err != nil {
			return err
		}
		if got := fmt.Sprintf("%v %v %v", v["event_type"], v["object_key"], v["medium"]); got != expected {
			return fmt.Errorf("event %d is %q, want %q", i, got, expected)
		}
		if v["tenant_id"] != "default" || v["backend_id"] != "m1" || v["model_name"] != "model" || v["block_size"] != 64.0 || v["lora_name"] != nil {
			return fmt.Errorf("event %d: %v", i, v)
		}
	}
	var removed int64
	if err := w.removeAll(ctx, &removed); err != nil {
		return err
	}
	count := int64(0)
	for {
		v, err := nextEvent(lines)
		if err != nil {
			return err
		}
		if v["event_type"] == "cleared" {
			break
		}
		if count++; v["event_type"] != "removed" {
			return fmt.Errorf("after removal of all: %v", v)
		}
	}
	if count != removed {
		return fmt.Errorf("%d objects were removed, %d events tell of it", removed, count)
	}
	status, err := http.Get(p.http + "/kv_events/status")
	if err != nil {
		return err
	}
	defer status.Body.Close()
	text, err := io.ReadAll(status.Body)
	if err != nil {
		return err
	}
	fmt.Printf("%d events in order and complete over libzmq; status %s\n", len(want)+int(count)+1, text)
	return nil
}

func nextEvent(lines *bufio.Scanner) (map[string]any, error) {
	if !lines.Scan() {
		return nil, fmt.Errorf("the subscriber has ended: %v", lines.Err())
	}
	var v map[string]any
	if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
		return nil, err
	}
	if n, lost := v["lost"]; lost {
		return nil, fmt.Errorf("%v events are lost", n)
	}
	return v, nil
}

// eventWorld is a client that does what kvEvents needs.
type eventWorld struct {
	conn *rpc.Client
	id   segment.UUID
}

func (w *eventWorld) mount(ctx context.Context) error {
	info := segment.Info{ID: w.id, Name: "s1", Base: 1 << 32, Size: 1 << 30, Endpoint: "s1", Protocol: "tcp"}
	var a errcode.Result[errcode.Void]
	if err := rpc.Invoke(ctx, w.conn, wire.MountSegment, &wire.MountSegmentRequest{Segment: info, ClientID: w.id}, &a); err != nil {
		return err
	}
	return failed("mount", a.Code)
}

func (w *eventWorld) put(ctx context.Context, key string) error {
	var ping errcode.Result[wire.PingReply]
	if err := rpc.Invoke(ctx, w.conn, wire.Ping, &wire.PingRequest{ClientID: w.id}, &ping); err != nil {
		return err
	}
	var start errcode.Result[[]object.ReplicaDescriptor]
	q := wire.PutStartRequest{ClientID: w.id, Key: key, SliceLength: 1000, Config: object.ReplicateConfig{ReplicaNum: 1}, TenantID: "default"}
	if err := rpc.Invoke(ctx, w.conn, wire.PutStart, &q, &start); err != nil {
		return err
	}
	if start.Code != errcode.OK {
		return failed("put "+key, start.Code)
	}
	var end errcode.Result[errcode.Void]
	if err := rpc.Invoke(ctx, w.conn, wire.PutEnd, &wire.PutEndRequest{ClientID: w.id, ObjectMeta: object.Meta{Key: key}, ReplicaType: object.ReplicaMemory, TenantID: "default"}, &end); err != nil {
		return err
	}
	return failed("end "+key, end.Code)
}

func (w *eventWorld) remove(ctx context.Context, key string) error {
	var a errcode.Result[errcode.Void]
	if err := rpc.Invoke(ctx, w.conn, wire.Remove, &wire.RemoveRequest{Key: key, Force: true, TenantID: "default"}, &a); err != nil {
		return err
	}
	return failed("remove "+key, a.Code)
}

func (w *eventWorld) removeAll(ctx context.Context, n *int64) error {
	return rpc.Invoke(ctx, w.conn, wire.RemoveAll, &wire.RemoveAllRequest{Force: true, TenantID: "default"}, n)
}

func failed(what string, code errcode.Code) error {
	if code == errcode.OK {
		return nil
	}
	return fmt.Errorf("%s: %v", what, code)
}

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/transport/structpack"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// echoCommand serves the floor that a master can be held against: one thread that frames and
// answers every call of the generator with success, without looking at keys.
func echoCommand(ctx context.Context, args []string, stdout, _ io.Writer) error {
	f := flag.NewFlagSet("echo", flag.ContinueOnError)
	port := f.Int("rpc_port", 0, "port to listen on, loopback only; 0 is any")
	if err := parse(f, args, stdout); err != nil {
		return err
	}
	if err := errors.Join(noArguments(f), between("rpc_port", *port, 0, 65535)); err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(*port)))
	if err != nil {
		return wrong("rpc_port", "%v", err)
	}
	fmt.Fprintf(stdout, "mooncake_bench echo is serving: rpc %v\n", l.Addr())
	e, err := newEcho()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return e.serve(ctx, l)
}

// echo answers requests from replies that it made once per call and length of the request;
// requests of the generator that are equally long are about equally many keys.
type echo struct {
	poll    *poller
	makers  map[uint32]func(body []byte) ([]byte, error) // by function id
	replies map[uint64][]byte                            // whole frames

	mu    sync.Mutex // guards conns, which the accepting goroutine extends
	conns []*conn
}

func newEcho() (*echo, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	e := &echo{poll: p, makers: map[uint32]func([]byte) ([]byte, error){}, replies: map[uint64][]byte{}}
	var (
		there   = errcode.Result[bool]{Value: true}
		done    errcode.Result[errcode.Void]
		replica = object.ReplicaDescriptor{Location: object.Location{Memory: object.MemoryDescriptor{
			Buffer: object.BufferDescriptor{Size: 4096, Protocol: "tcp", Endpoint: "bench-0000-000:17000"},
		}}, Status: object.ReplicaComplete}
		written = errcode.Result[[]object.ReplicaDescriptor]{Value: []object.ReplicaDescriptor{replica}}
		read    = errcode.Result[object.ReplicaList]{Value: object.ReplicaList{Replicas: written.Value, LeaseTTLMs: 10_000}}
		ready   = errcode.Result[string]{Value: wire.ProtocolVersion}
		pong    = errcode.Result[wire.PingReply]{Value: wire.PingReply{ClientStatus: wire.ClientOK}}
	)
	canned(e, wire.ServiceReady, func(*wire.ServiceReadyRequest) errcode.Result[string] { return ready })
	canned(e, wire.Ping, func(*wire.PingRequest) errcode.Result[wire.PingReply] { return pong })
	canned(e, wire.MountSegment, func(*wire.MountSegmentRequest) errcode.Result[errcode.Void] { return done })
	canned(e, wire.ReMountSegment, func(*wire.ReMountSegmentRequest) errcode.Result[errcode.Void] { return done })
	canned(e, wire.UnmountSegment, func(*wire.UnmountSegmentRequest) errcode.Result[errcode.Void] { return done })
	canned(e, wire.ExistKey, func(*wire.ExistKeyRequest) errcode.Result[bool] { return there })
	canned(e, wire.GetReplicaList, func(*wire.GetReplicaListRequest) errcode.Result[object.ReplicaList] { return read })
	canned(e, wire.PutStart, func(*wire.PutStartRequest) errcode.Result[[]object.ReplicaDescriptor] { return written })
	canned(e, wire.PutEnd, func(*wire.PutEndRequest) errcode.Result[errcode.Void] { return done })
	canned(e, wire.UpsertStart, func(*wire.UpsertStartRequest) errcode.Result[[]object.ReplicaDescriptor] { return written })
	canned(e, wire.UpsertEnd, func(*wire.UpsertEndRequest) errcode.Result[errcode.Void] { return done })
	canned(e, wire.Remove, func(*wire.RemoveRequest) errcode.Result[errcode.Void] { return done })
	canned(e, wire.BatchExistKey, func(q *wire.BatchExistKeyRequest) []errcode.Result[bool] { return times(len(q.Keys), there) })
	canned(e, wire.BatchGetReplicaList, func(q *wire.BatchGetReplicaListRequest) []errcode.Result[object.ReplicaList] {
		return times(len(q.Keys), read)
	})
	canned(e, wire.BatchPutStart, func(q *wire.BatchPutStartRequest) []errcode.Result[[]object.ReplicaDescriptor] {
		return times(len(q.Keys), written)
	})
	canned(e, wire.BatchPutEnd, func(q *wire.BatchPutEndRequest) []errcode.Result[errcode.Void] {
		return times(len(q.ObjectMetas), done)
	})
	canned(e, wire.BatchUpsertStart, func(q *wire.BatchUpsertStartRequest) []errcode.Result[[]object.ReplicaDescriptor] {
		return times(len(q.Keys), written)
	})
	canned(e, wire.BatchUpsertEnd, func(q *wire.BatchUpsertEndRequest) []errcode.Result[errcode.Void] {
		return times(len(q.ObjectMetas), done)
	})
	canned(e, wire.BatchRemove, func(q *wire.BatchRemoveRequest) []errcode.Result[errcode.Void] { return times(len(q.Keys), done) })
	return e, nil
}

// times repeats a result.
func times[T any](n int, v T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// canned tells how the reply to a call is made when it first comes.
func canned[Req, Resp any](e *echo, r *wire.RPC[Req, Resp], answer func(*Req) Resp) {
	e.makers[r.ID()] = func(body []byte) ([]byte, error) {
		var req Req
		form, err := r.DecodeRequest(body, &req)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name(), err)
		}
		resp := answer(&req)
		reply := make([]byte, replyHead)
		reply[0] = magic
		reply = r.AppendResponse(reply, &resp, structpack.Form{Literal: form.Literal, Compat: true})
		binary.LittleEndian.PutUint32(reply[8:], uint32(len(reply)-replyHead))
		return reply, nil
	}
}

// maxCanned bounds the replies that are kept.
const maxCanned = 4096

// answer appends the reply to one request.
func (e *echo) answer(dst []byte, function, seq uint32, body []byte) ([]byte, error) {
	key := uint64(function)<<32 | uint64(len(body))
	reply := e.replies[key]
	if reply == nil {
		maker := e.makers[function]
		if maker == nil {
			return nil, fmt.Errorf("function 0x%08x is not one of the generator's", function)
		}
		var err error
		if reply, err = maker(body); err != nil {
			return nil, err
		}
		if len(e.replies) < maxCanned {
			e.replies[key] = reply
		}
	}
	at := len(dst)
	dst = append(dst, reply...)
	binary.LittleEndian.PutUint32(dst[at+4:], seq)
	return dst, nil
}

// serve answers connections until ctx ends.
func (e *echo) serve(ctx context.Context, l net.Listener) error {
	defer e.poll.close()
	accepting := make(chan error, 1)
	go func() { accepting <- e.accept(l) }()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for ctx.Err() == nil {
		if err := e.poll.wait(100*time.Millisecond, e.ready); err != nil {
			return errors.Join(err, l.Close(), <-accepting)
		}
	}
	err := <-accepting
	for _, c := range e.conns {
		if c != nil {
			closeSocket(c.fd)
		}
	}
	return err
}

// accept takes connections until the listener is closed.
func (e *echo) accept(l net.Listener) error {
	for {
		nc, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting: %w", err)
		}
		fd, err := detach(nc)
		if err != nil {
			return err
		}
		e.mu.Lock()
		c := &conn{fd: fd, index: len(e.conns)}
		e.conns = append(e.conns, c)
		e.mu.Unlock()
		if err := e.poll.add(fd, c.index); err != nil {
			return err
		}
	}
}

// ready answers what a connection has sent. A connection that ends or sends garbage is
// closed.
func (e *echo) ready(index int, _ bool) error {
	e.mu.Lock()
	c := e.conns[index]
	e.mu.Unlock()
	if c == nil {
		return nil
	}
	err := c.frames(requestHead, 12, func(head, body []byte) (err error) {
		c.out, err = e.answer(c.out, binary.LittleEndian.Uint32(head[8:]), binary.LittleEndian.Uint32(head[4:]), body)
		return err
	})
	if err == nil {
		err = c.flush(e.poll)
	}
	if err != nil {
		closeSocket(c.fd)
		e.mu.Lock()
		e.conns[index] = nil
		e.mu.Unlock()
	}
	return nil
}

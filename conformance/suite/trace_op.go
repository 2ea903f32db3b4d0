package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// op is one operation of a trace. It doesn't depend on what earlier ones were answered, so any
// of them may be left out.
type op struct {
	n    int
	name string
	args string
	// touches are the keys, as TENANT/KEY, that it is about; none means all.
	touches []string
	// leases says that it may grant leases, minds that its answer depends on them.
	leases, minds bool
	// settle is a segment that has to be gone on both sides before the trace goes on.
	settle segment.UUID
	// rest is how long the trace waits after the operation if it was answered with success, for
	// what the masters do by themselves.
	rest time.Duration
	// mask changes answers before they are compared, where the original chooses at random.
	mask func(string) string
	// setup operations are never left out when a trace is made shorter.
	setup bool
	// quiet operations are not compared: they bring both sides into the same state.
	quiet bool

	ask func(ctx context.Context, s *side) (string, error)
	// instead is what the reference is asked where it refuses the operation and ours doesn't.
	instead *op
}

// binding is what an operation takes from, and leaves for, others.
type binding[Req, Resp any] struct {
	bind  func(ctx context.Context, s *side, q *Req) error
	learn func(s *side, a *Resp)
	old   bool // as release 0.3.13 sends it
}

func rpcOp[Req, Resp any](r *wire.RPC[Req, Resp], q Req, b binding[Req, Resp]) *op {
	o := &op{name: r.Name(), args: argumentsText(q)}
	o.ask = func(ctx context.Context, s *side) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		q, a := q, *new(Resp)
		if b.bind != nil {
			if err := b.bind(ctx, s, &q); err != nil {
				return "", err
			}
		}
		conn := s.conn
		if b.old {
			conn = s.old
		}
		err := rpc.Invoke(ctx, conn, r, &q, &a)
		if refused := (*rpc.ReplyError)(nil); errors.As(err, &refused) {
			return fmt.Sprintf("rpc error %d", refused.Code), nil
		}
		if err != nil {
			return "", fmt.Errorf("%w: %s: %w", errGone, r.Name(), err)
		}
		if b.learn != nil {
			b.learn(s, &a)
		}
		return answerText(a, s.names), nil
	}
	return o
}

// call is an operation with nothing special about it.
func call[Req, Resp any](r *wire.RPC[Req, Resp], q Req) *op {
	return rpcOp(r, q, binding[Req, Resp]{})
}

func httpOp(method, path, body string) *op {
	return &op{
		name: method + " " + strings.SplitN(path, "?", 2)[0], args: path + " " + body,
		ask: func(_ context.Context, s *side) (string, error) {
			status, text, err := s.fetch(method, path, body)
			if err != nil {
				return "", fmt.Errorf("%w: %s: %w", errGone, path, err)
			}
			return fmt.Sprint(status, " ", scrub(ordered(path, text))), nil
		},
	}
}

// ordered sorts a body whose order the original leaves to a hash table.
func ordered(path, body string) string {
	cut := "\n"
	switch {
	case strings.HasPrefix(path, "/get_all_"):
	case strings.HasPrefix(path, "/get_segments_detail"):
		cut = "{"
		body = strings.NewReplacer("},", "}", "]}", "").Replace(body)
	default:
		return body
	}
	parts := strings.Split(body, cut)
	slices.Sort(parts)
	return strings.Join(parts, cut)
}

func (o *op) String() string { return fmt.Sprintf("#%d %s %s", o.n, o.name, o.args) }

// about reports whether two operations may have to do with each other.
func (o *op) about(other *op) bool {
	if len(o.touches) == 0 || len(other.touches) == 0 {
		return true
	}
	for _, k := range o.touches {
		if slices.Contains(other.touches, k) {
			return true
		}
	}
	return false
}

// done is an operation that both sides have answered.
type done struct {
	*op
	want, got string // what the reference and ours answered
}

func (d *done) differ() bool { return !d.quiet && d.want != d.got }

// signature names a difference without the values.
func (d *done) signature() string {
	want, got := outline(d.want), outline(d.got)
	if want == got {
		return fmt.Sprintf("%s: another %s", d.name, d.field())
	}
	return fmt.Sprintf("%s: reference %s, ours %s", d.name, want, got)
}

// field is the name of the field in which the answers begin to differ.
func (d *done) field() string {
	at := 0
	for at < min(len(d.want), len(d.got)) && d.want[at] == d.got[at] {
		at++
	}
	before := d.want[:at]
	if i := strings.LastIndexAny(before, " {,"); strings.LastIndexByte(before, ':') < i {
		return "list"
	}
	before = before[:strings.LastIndexByte(before, ':')+1]
	if i := strings.LastIndexAny(strings.TrimSuffix(before, ":"), " {,"); i >= 0 {
		before = before[i+1:]
	}
	return strings.Trim(before, `":`)
}

// outline keeps what is no detail of an answer: codes, and whether there is a value.
func outline(answer string) string {
	var codes []string
	for _, word := range strings.FieldsFunc(answer, func(r rune) bool { return strings.ContainsRune(" ,[]{}", r) }) {
		if i := strings.Index(word, "(-"); i > 0 && strings.HasSuffix(word, ")") && !slices.Contains(codes, word) {
			codes = append(codes, word)
		}
	}
	if len(codes) > 0 {
		if strings.HasPrefix(answer, "[") {
			codes = append(codes, "…")
		}
		slices.Sort(codes)
		return strings.Join(codes, "+")
	}
	if strings.HasPrefix(answer, "task of") {
		return "a task"
	}
	if len(answer) > 20 {
		return answer[:20] + "…"
	}
	return answer
}

// kindOf is the kind of an answer of the reference: its codes, or that there is a value.
func kindOf(answer string) string {
	switch o := outline(answer); {
	case strings.Contains(o, "(-"):
		return o
	case strings.HasPrefix(answer, "rpc error"):
		return answer
	case answer == "[]" || answer == "0" || answer == "false" || answer == "nil":
		return answer
	case len(answer) > 4 && answer[3] == ' ': // a status
		return answer[:3]
	}
	return "value"
}

// both asks both sides at once.
func (o *op) both(ctx context.Context, ref, ours *side) (*done, error) {
	d := &done{op: o}
	failed := make(chan error, 1)
	go func() {
		var err error
		d.want, err = o.ask(ctx, ref)
		failed <- err
	}()
	var err error
	d.got, err = o.ask(ctx, ours)
	if err != nil {
		err = fmt.Errorf("%s: %w", ours.name, err)
	}
	if first := <-failed; first != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w", ref.name, first))
	}
	if err == nil && o.mask != nil {
		d.want, d.got = o.mask(d.want), o.mask(d.got)
	}
	if err == nil && o.rest > 0 && d.want == "{}" {
		time.Sleep(o.rest)
	}
	if err == nil && !o.settle.IsZero() {
		err = errors.Join(ref.settled(o.settle), ours.settled(o.settle))
	}
	return d, err
}

// settled waits until a segment that was unmounted is gone, objects and quotas included.
func (s *side) settled(id segment.UUID) error {
	var body string
	if await(10*time.Second, func() bool {
		var err error
		_, body, err = s.fetch("GET", "/get_segments_detail", "")
		return err == nil && !strings.Contains(body, `"segment_id":"`+id.String()+`"`)
	}) {
		return nil
	}
	return fmt.Errorf("%s: segment %v is still there 10 s after its unmount: %s", s.name, id, body)
}

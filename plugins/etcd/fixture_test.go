package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mooncake-go/mooncake-master/sdk"
)

func freePort(host string) string { return freePorts(host, 1)[0] }

// freePorts returns addresses that nobody listens on, all different.
func freePorts(host string, n int) []string {
	var all []string
	for range n {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			panic(err)
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all
}

// clusters are the ids given to tests, by test: one that is run again gets another.
var clusters sync.Map

var clusterCount atomic.Int64

// clusterOf makes a cluster id of a test's name.
func clusterOf(t *testing.T) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' {
			return '-'
		}
		return r
	}, t.Name())
	if id, known := clusters.Load(t); known {
		return id.(string)
	}
	id, _ := clusters.LoadOrStore(t, fmt.Sprint(name, "-", clusterCount.Add(1)))
	return id.(string)
}

func keyOf(t *testing.T) string { return "mooncake-store/" + clusterOf(t) + "/tenant_quota_policy" }

// connect returns a connector for the test's own key, stopped at its end. Options come in pairs.
func connect(t *testing.T, uri string, options ...string) *Connector {
	t.Helper()
	return connectWithin(t, usual, uri, options...)
}

// quick are limits of a connector that notices sooner what is dead.
var quick = limits{patience: time.Second, pulse: 300 * time.Millisecond, document: sdk.MaxDocument}

func connectWithin(t *testing.T, within limits, uri string, options ...string) *Connector {
	t.Helper()
	c := New(hclog.NewNullLogger())
	c.limits = within
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	all := map[string]string{"request_timeout": "1s", "reconcile": "1h"}
	for i := 0; i < len(options); i += 2 {
		all[options[i]] = options[i+1]
	}
	if err := c.Configure(t.Context(), sdk.Config{URI: uri, ClusterID: clusterOf(t), Options: all}); err != nil {
		t.Fatal(err)
	}
	return c
}

// operator is an etcd client of somebody else.
func operator(t *testing.T, place string, change ...func(*clientv3.Config)) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{Endpoints: []string{place}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(), MaxCallSendMsgSize: 80 << 20}
	for _, f := range change {
		f(&config)
	}
	c, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// put writes a value; a cluster that is electing is asked again. A write that was given up may still be made,
// when a member comes back that has it: so it is one of the version that was there.
func put(t *testing.T, c *clientv3.Client, key, value string) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for tried := false; ; tried = true {
		revision, err := putOnce(ctx, c, key, value, tried)
		if err == nil && revision > 0 {
			return revision
		}
		if ctx.Err() != nil || status.Code(err) == codes.InvalidArgument {
			t.Fatal(err)
		}
	}
}

// putOnce writes a value over what is there, and returns 0 if somebody else was quicker.
func putOnce(ctx context.Context, c *clientv3.Client, key, value string, tried bool) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	there, err := c.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	var version int64
	for _, kv := range there.Kvs {
		if version = kv.ModRevision; tried && string(kv.Value) == value {
			return there.Header.Revision, nil // the try before was made after all
		}
	}
	r, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", version)).Then(clientv3.OpPut(key, value)).Commit()
	if err != nil || !r.Succeeded {
		return 0, err
	}
	return r.Header.Revision, nil
}

func remove(t *testing.T, c *clientv3.Client, key string) {
	t.Helper()
	if _, err := c.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

// recorder is a sink that keeps everything.
type recorder struct {
	mu     sync.Mutex
	events []string
	whys   []string
	bell   chan struct{}
}

func (r *recorder) Snapshot(doc sdk.Document) { r.add("doc "+string(doc.Content), "") }

func (r *recorder) Unavailable(why *sdk.Unavailable) { r.add(why.Kind.String(), why.Reason) }

func (r *recorder) add(event, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
	r.whys = append(r.whys, why)
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

func (r *recorder) last() (event, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return "", ""
	}
	return r.events[len(r.events)-1], r.whys[len(r.events)-1]
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.events...)
}

func (r *recorder) reasons() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.whys...)
}

// await waits until the newest event is this one, five seconds at most, and returns its reason.
func (r *recorder) await(t *testing.T, event string) string {
	t.Helper()
	limit := time.After(5 * time.Second)
	for {
		is, why := r.last()
		if is == event {
			return why
		}
		select {
		case <-r.bell:
		case <-limit:
			t.Fatalf("last event %.200q (%s), want %.200q; all: %.2000q", is, why, event, r.all())
		}
	}
}

// watching starts a Watch that ends with the test.
func watching(t *testing.T, c *Connector) *recorder {
	t.Helper()
	r := &recorder{bell: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Watch(ctx, "", r) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

// unavailableAs checks the kind of an error and what its reason says.
func unavailableAs(t *testing.T, err error, kind sdk.Kind, says ...string) {
	t.Helper()
	var why *sdk.Unavailable
	if !errors.As(err, &why) || why.Kind != kind {
		t.Fatalf("error %v, want one of kind %s", err, kind)
	}
	for _, s := range says {
		if !strings.Contains(why.Reason, s) {
			t.Errorf("reason %q does not say %q", why.Reason, s)
		}
	}
}

// proxy stands between a connector and a server.
type proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu     sync.Mutex
	frozen chan struct{}     // guarded by mu; nil: everything passes; closed when it thaws
	cut    string            // guarded by mu; a request that holds this is passed on, its answer is not
	after  func()            // guarded by mu; called when that has happened
	conns  map[net.Conn]bool // guarded by mu
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.thaw()
		p.drop()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.wg.Go(func() { p.pass(client, server, true) })
		p.wg.Go(func() { p.pass(server, client, false) })
	}
}

func (p *proxy) pass(from, to net.Conn, requests bool) {
	defer from.Close()
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		frozen, cut, after := p.frozen, p.cut, p.after
		hit := requests && cut != "" && strings.Contains(string(b[:n]), cut)
		if hit {
			p.cut = ""
			p.frozen = make(chan struct{})
		}
		p.mu.Unlock()
		if frozen != nil {
			<-frozen
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
		if hit {
			after()
			p.drop()
			p.thaw()
			return
		}
	}
}

// drop breaks all connections.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

// freeze lets nothing pass any more, without breaking anything.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = make(chan struct{})
}

func (p *proxy) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

// cutAfter breaks the connections after the next request that holds a text has reached the
// server and f has returned; the answer does not come back.
func (p *proxy) cutAfter(text string, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.after = text, f
}

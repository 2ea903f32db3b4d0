package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"

	"github.com/mooncake-go/mooncake-master/sdk"
)

const (
	// connectLimit bounds one attempt to connect to a member, and connectPause the time between
	// two attempts: a member that is back is found within a few seconds.
	connectLimit = 2 * time.Second
	connectPause = time.Second
	// aliveEvery and aliveLimit are about connections that nobody uses: the client library does
	// not ask more often.
	aliveEvery = 10 * time.Second
	aliveLimit = 3 * time.Second
	// anotherAfter is when another member is asked besides one that does not answer.
	anotherAfter = 500 * time.Millisecond
	// messageMost bounds what a member may send in one message: a document and what is around it.
	messageMost = sdk.MaxDocument + 1<<20
)

// link is the way to the cluster under one configuration. Its client is made when it is needed,
// and anew when its credentials do not hold any more.
type link struct {
	*settings
	ctx    context.Context // ends with the link
	cancel context.CancelFunc
	turn   chan struct{} // holds one token while a client is made or thrown away
	client *clientv3.Client

	mu      sync.Mutex
	trouble map[string]string // guarded by mu; why a member could not be connected to
}

func newLink(s *settings) *link {
	l := &link{settings: s, turn: make(chan struct{}, 1), trouble: map[string]string{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// conn returns the connections to the cluster, with a valid token if one is needed.
func (l *link) conn(ctx context.Context) (*clientv3.Client, *grpc.ClientConn, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	defer func() { <-l.turn }()
	if l.ctx.Err() != nil {
		return nil, nil, errReplaced
	}
	if l.client == nil {
		client, err := clientv3.New(l.config())
		if err != nil {
			return nil, nil, err
		}
		l.client = client
	}
	return l.client, l.client.ActiveConnection(), nil
}

// errReplaced ends what is done under a configuration that is not in force any more.
var errReplaced = errors.New("the connector was configured anew or stopped")

func (l *link) config() clientv3.Config {
	config := clientv3.Config{
		Endpoints: l.endpoints, Context: l.ctx, Logger: zap.NewNop(), DialTimeout: l.timeout,
		DialKeepAliveTime: aliveEvery, DialKeepAliveTimeout: aliveLimit,
		MaxCallRecvMsgSize: messageMost, MaxCallSendMsgSize: messageMost,
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: connectPause},
				MinConnectTimeout: connectLimit,
			}),
			grpc.WithContextDialer(l.dial), grpc.WithNoProxy(), grpc.WithIdleTimeout(0),
		},
	}
	if l.secure {
		config.DialOptions = append(config.DialOptions, grpc.WithTransportCredentials(&handshaker{files: l.files, failed: l.note}))
	}
	if l.user != "" {
		config.Username = l.user
		if secret, err := l.readPassword(); err == nil {
			config.Password = secret
			l.note("password_file", nil)
		} else {
			config.Username = "" // the cluster will say that it wants one
			l.note("password_file", err)
		}
	}
	return config
}

// dial connects to a member and remembers why it could not.
func (l *link) dial(ctx context.Context, place string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectLimit}
	conn, err := d.DialContext(ctx, "tcp", place)
	if err != nil || !l.secure { // else the handshake tells
		l.note(place, err)
	}
	return conn, err
}

// note remembers why there is no connection to a member, or that there is one.
func (l *link) note(place string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.trouble, place)
		return
	}
	text := err.Error()
	var op *net.OpError
	if errors.As(err, &op) && !strings.Contains(text, "remote error") {
		text = op.Err.Error() // without our own port, which is another one each time
	}
	l.trouble[place] = plain(text)
}

// troubles says which members can't be connected to, and why; "" when there is none.
func (l *link) troubles() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for place, why := range l.trouble {
		all = append(all, place+": "+why)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// renew throws a client away whose credentials do not hold any more; the next call makes
// another.
func (l *link) renew(old *clientv3.Client) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if old != nil && l.client == old {
		l.client = nil
		_ = old.Close() // it says that it was closed
	}
}

// close ends everything under way.
func (l *link) close() {
	l.cancel()
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.client != nil {
		_ = l.client.Close() // it says that it was closed
		l.client = nil
	}
}

// rest waits before another attempt: not longer than d, and where no member could be connected
// to, only until one can.
func (l *link) rest(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	stop := context.AfterFunc(l.ctx, cancel)
	defer stop()
	if conn := l.existing(ctx); conn != nil {
		for state := conn.GetState(); state != connectivity.Ready; {
			if !conn.WaitForStateChange(ctx, state) {
				return
			}
			if state = conn.GetState(); state == connectivity.Ready {
				return
			}
		}
	}
	<-ctx.Done()
}

// connected tells whether a member can be talked to now.
func (l *link) connected(ctx context.Context) bool {
	conn := l.existing(ctx)
	return conn != nil && conn.GetState() == connectivity.Ready
}

// existing returns the connections if they have been made, else nil.
func (l *link) existing(ctx context.Context) *grpc.ClientConn {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-l.turn }()
	if l.client == nil {
		return nil
	}
	return l.client.ActiveConnection()
}

// attempt makes one call with its deadline. A failure for want of a valid token is tried once
// more with a new client.
func (l *link) attempt(ctx context.Context, call func(context.Context, *grpc.ClientConn) error) error {
	for again := true; ; again = false {
		client, conn, err := l.conn(ctx)
		if err == nil {
			limited, cancel := context.WithTimeoutCause(clientv3.WithRequireLeader(ctx), l.timeout, fmt.Errorf("no answer within %s", l.timeout))
			stop := context.AfterFunc(l.ctx, cancel)
			err = call(limited, conn)
			stop()
			if err != nil && limited.Err() != nil && ctx.Err() == nil && l.ctx.Err() == nil {
				err = context.Cause(limited)
			}
			cancel()
		}
		if err == nil || l.user == "" || !stale(err) {
			return err
		}
		l.renew(client)
		if !again || ctx.Err() != nil {
			return err
		}
	}
}

// callOptions are those of every call: to fail at once where no member can be connected to.
var callOptions = []grpc.CallOption{
	grpc.WaitForReady(false), grpc.MaxCallRecvMsgSize(messageMost), grpc.MaxCallSendMsgSize(messageMost),
}

// found is what a read saw.
type found struct {
	present  bool
	content  []byte
	mod      int64 // modification revision of the key, 0 when absent
	create   int64
	at       int64 // revision of the cluster when it was read
	cluster  uint64
	revision string // for the contract, "" when absent
}

// document is what was found, for the master.
func (f found) document() sdk.Document { return sdk.Document{Content: f.content, Revision: f.revision} }

// read reads the key as it is now. A member that has not answered soon is not waited for: the next
// is asked besides, and the first answer counts. Members that hang keep their connections.
func (l *link) read(ctx context.Context) (found, error) {
	ctx, cancel := context.WithCancel(ctx)
	type answer struct {
		f   found
		err error
	}
	answers := make(chan answer, len(l.endpoints))
	var asked sync.WaitGroup
	defer asked.Wait()
	defer cancel()
	soon := time.NewTicker(anotherAfter)
	defer soon.Stop()
	var last answer
	ask := func() { f, err := l.readOnce(ctx, 0); answers <- answer{f, err} }
	asked.Go(ask)
	for begun, ended := 1, 0; ended < begun; {
		select {
		case last = <-answers:
			if ended++; last.err == nil {
				return last.f, nil
			}
		case <-soon.C:
			if begun < len(l.endpoints) {
				begun++
				asked.Go(ask)
			}
		}
	}
	return last.f, last.err
}

// readOnce reads the key as it is now, or, with a revision above 0, as it was then.
func (l *link) readOnce(ctx context.Context, revision int64) (found, error) {
	var f found
	err := l.attempt(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
		answer, err := etcdserverpb.NewKVClient(conn).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(l.key), Revision: revision}, callOptions...)
		if err != nil {
			return err
		}
		f = found{at: answer.GetHeader().GetRevision(), cluster: answer.GetHeader().GetClusterId()}
		for _, kv := range answer.GetKvs() {
			f.present, f.content, f.mod, f.create = true, kv.GetValue(), kv.GetModRevision(), kv.GetCreateRevision()
			f.revision = revisionOf(f.mod, f.content)
		}
		return nil
	})
	return f, err
}

package segment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

const (
	// etcdTimeout bounds one question to the cluster, as the released clients do.
	etcdTimeout = 5 * time.Second
	// etcdPause is the longest time between two attempts to connect to a member.
	etcdPause = time.Second
	// etcdAliveEvery and etcdAliveLimit notice a member that has vanished without closing its connections.
	etcdAliveEvery = 10 * time.Second
	etcdAliveLimit = 3 * time.Second
)

// etcdShelf is a cluster of etcd. Entries are kept until they are removed, without a lease, as the released clients
// keep theirs.
type etcdShelf struct {
	members string // for errors
	client  *clientv3.Client
}

// newEtcdShelf makes a client of the members host:port, set apart by commas or semicolons.
func newEtcdShelf(members string) (*etcdShelf, error) {
	var endpoints []string
	for _, member := range strings.FieldsFunc(members, func(r rune) bool { return r == ',' || r == ';' }) {
		member = strings.TrimSpace(member)
		if host, port, err := net.SplitHostPort(strings.TrimPrefix(member, "http://")); err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("%q is no host:port of a member of etcd", member)
		}
		endpoints = append(endpoints, member)
	}
	if len(endpoints) == 0 {
		return nil, errors.New("it names no member of etcd")
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: etcdTimeout,
		DialKeepAliveTime: etcdAliveEvery, DialKeepAliveTimeout: etcdAliveLimit,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: etcdPause},
			MinConnectTimeout: 2 * time.Second,
		})},
	})
	if err != nil {
		return nil, err
	}
	return &etcdShelf{members: strings.Join(endpoints, ","), client: client}, nil
}

// ask makes one call, within etcdTimeout.
func (s *etcdShelf) ask(ctx context.Context, key string, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	if err := call(ctx); err != nil {
		return fmt.Errorf("etcd at %s, key %s: %w", s.members, key, err)
	}
	return nil
}

func (s *etcdShelf) get(ctx context.Context, key string) (text []byte, err error) {
	err = s.ask(ctx, key, func(ctx context.Context) error {
		got, err := s.client.Get(ctx, key)
		switch {
		case err != nil:
			return err
		case len(got.Kvs) == 0:
			return ErrNotFound
		}
		text = got.Kvs[0].Value
		return nil
	})
	return text, err
}

func (s *etcdShelf) put(ctx context.Context, key string, text []byte) error {
	return s.ask(ctx, key, func(ctx context.Context) error {
		_, err := s.client.Put(ctx, key, string(text))
		return err
	})
}

// holds is the condition that a key has a text, or none.
func holds(key string, text []byte) clientv3.Cmp {
	if text == nil {
		return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	}
	return clientv3.Compare(clientv3.Value(key), "=", string(text))
}

func (s *etcdShelf) swap(ctx context.Context, key string, old, text []byte) error {
	return s.transact(ctx, key, old, clientv3.OpPut(key, string(text)))
}

func (s *etcdShelf) remove(ctx context.Context, old []byte, keys ...string) error {
	var ops []clientv3.Op
	for _, key := range keys {
		ops = append(ops, clientv3.OpDelete(key))
	}
	return s.transact(ctx, keys[0], old, ops...)
}

// transact does something as long as a key has a text.
func (s *etcdShelf) transact(ctx context.Context, key string, old []byte, ops ...clientv3.Op) error {
	return s.ask(ctx, key, func(ctx context.Context) error {
		done, err := s.client.Txn(ctx).If(holds(key, old)).Then(ops...).Commit()
		if err == nil && !done.Succeeded {
			err = errMoved
		}
		return err
	})
}

func (s *etcdShelf) close() error { return s.client.Close() }

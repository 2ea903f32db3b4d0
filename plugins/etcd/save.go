package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mooncake-go/mooncake-master/sdk"
)

const (
	// saveLimit is how long a save is pursued of which it is not known what became of it.
	saveLimit = 15 * time.Second
	// history is how many versions are looked through for one that we may have saved.
	history = 64
)

// Save implements sdk.Connector by a compare-and-swap.
func (c *Connector) Save(ctx context.Context, document []byte, expected string) (string, error) {
	c.mu.Lock()
	l := c.link
	if l != nil {
		c.saving.Add(1) // under mu, so that Stop waits for it
		defer c.saving.Done()
	}
	c.mu.Unlock()
	if l == nil {
		return "", errUnconfigured
	}
	if len(document) > l.limits.document {
		return "", &sdk.Unavailable{Kind: sdk.Invalid, Reason: fmt.Sprintf("the document has %d bytes, at most %d can be kept", len(document), l.limits.document)}
	}
	ctx, cancel := context.WithTimeout(ctx, saveLimit)
	defer cancel()
	s := &save{c: c, link: l, document: document, expected: expected}
	return s.run(ctx)
}

// save is one call of Save.
type save struct {
	*link
	c        *Connector
	document []byte
	expected string
	// unsure: a swap was not answered; it may have happened, or may happen yet, after base.
	unsure bool
	base   found
}

// run tries until it is known what became of the save, or the time is over.
func (s *save) run(ctx context.Context) (string, error) {
	var pauses pauses
	for {
		now, why := s.c.read(ctx, s.link)
		switch {
		case why != nil && !s.unsure:
			return "", why
		case why != nil:
		case now.revision != s.expected:
			return s.overtaken(ctx, now)
		default:
			revision, err := s.swap(ctx, now)
			switch {
			case err == nil:
				return revision, nil
			case errors.Is(err, sdk.ErrConflict) && s.unsure:
				continue // perhaps it was overtaken by itself
			case !unclear(err):
				return "", err
			}
			why, s.unsure, s.base = s.unavailable(err), true, now
		}
		s.rest(ctx, pauses.next(impatient))
		if ctx.Err() != nil || s.ctx.Err() != nil {
			return "", &sdk.Unavailable{Kind: sdk.Unreachable, Reason: fmt.Sprintf("it is not known whether etcd key '%s' was saved: %s", s.key, why.Reason)}
		}
	}
}

// overtaken deals with a key that is not as expected, or not any more.
func (s *save) overtaken(ctx context.Context, now found) (string, error) {
	if s.unsure {
		if revision := s.ours(ctx, now); revision != "" {
			return revision, nil
		}
	}
	is, want := now.revision, s.expected
	if is == "" {
		is = "no document"
	}
	if want == "" {
		want = "no document"
	}
	return "", fmt.Errorf("%w: etcd key '%s' holds %s, not %s", sdk.ErrConflict, s.key, is, want)
}

// ours looks for the document among the versions since the swap that was not answered, and
// returns its revision.
func (s *save) ours(ctx context.Context, now found) string {
	for range history {
		if !now.present || now.mod <= s.base.mod {
			return ""
		}
		if bytes.Equal(now.content, s.document) {
			return now.revision
		}
		before, err := s.readOnce(ctx, now.mod-1)
		if err != nil {
			return "" // compacted
		}
		now = before
	}
	return ""
}

// errUnclear marks a swap of which it is not known whether it happened.
type errUnclear struct{ error }

// Unwrap gives the cause.
func (e errUnclear) Unwrap() error { return e.error }

func unclear(err error) bool {
	var e errUnclear
	return errors.As(err, &e)
}

// swap puts the document into the place of what was read.
func (s *save) swap(ctx context.Context, now found) (string, error) {
	compare := func(target etcdserverpb.Compare_CompareTarget, value *etcdserverpb.Compare) *etcdserverpb.Compare {
		value.Key, value.Result, value.Target = []byte(s.key), etcdserverpb.Compare_EQUAL, target
		return value
	}
	request := &etcdserverpb.TxnRequest{
		Compare: []*etcdserverpb.Compare{
			compare(etcdserverpb.Compare_MOD, &etcdserverpb.Compare{TargetUnion: &etcdserverpb.Compare_ModRevision{ModRevision: now.mod}}),
			compare(etcdserverpb.Compare_CREATE, &etcdserverpb.Compare{TargetUnion: &etcdserverpb.Compare_CreateRevision{CreateRevision: now.create}}),
		},
		Success: []*etcdserverpb.RequestOp{{Request: &etcdserverpb.RequestOp_RequestPut{
			RequestPut: &etcdserverpb.PutRequest{Key: []byte(s.key), Value: s.document},
		}}},
	}
	var answer *etcdserverpb.TxnResponse
	err := s.attempt(ctx, func(ctx context.Context, conn *grpc.ClientConn) (err error) {
		answer, err = etcdserverpb.NewKVClient(conn).Txn(ctx, request, callOptions...)
		return err
	})
	switch {
	case err != nil:
		return "", s.failed(err)
	case !answer.GetSucceeded():
		return "", fmt.Errorf("%w: etcd key '%s' was changed meanwhile", sdk.ErrConflict, s.key)
	}
	return revisionOf(answer.GetHeader().GetRevision(), s.document), nil
}

// failed sorts the errors of a swap: what is not known to have had no effect is unclear.
func (s *save) failed(err error) error {
	refuse := func(kind sdk.Kind, format string, args ...any) error {
		return &sdk.Unavailable{Kind: kind, Reason: fmt.Sprintf("etcd key '%s' was not saved: ", s.key) + fmt.Sprintf(format, args...)}
	}
	text := message(err)
	switch e := rpctypes.Error(err); {
	case errors.Is(e, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("%w: %s", sdk.ErrReadOnly, s.refused(err, "write"))
	case s.refused(err, "write") != "":
		return refuse(sdk.Auth, "%s", s.refused(err, "write"))
	case errors.Is(e, rpctypes.ErrRequestTooLarge), status.Code(err) == codes.ResourceExhausted && strings.Contains(text, "larger than max"):
		return refuse(sdk.Invalid, "the document has %d bytes, more than etcd takes in one request (its limit is --max-request-bytes, 1572864 by default); raise the limit on every member or shorten the document",
			len(s.document))
	case errors.Is(e, rpctypes.ErrNoSpace):
		return refuse(sdk.Unreachable, "etcd's database is full (%s): compact, defragment and disarm the alarm", text)
	case errors.Is(e, rpctypes.ErrTooManyRequests), errors.Is(e, rpctypes.ErrNoLeader):
		return refuse(sdk.Unreachable, "%s", text)
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented, codes.NotFound:
		return refuse(sdk.Unreachable, "%s", text)
	}
	return errUnclear{err}
}

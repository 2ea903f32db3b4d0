package connector

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mooncake-go/mooncake-master/core/policy"
	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// Load implements policy.Source. While the process is being started again it waits for it.
func (c *Connector) Load(ctx context.Context) (policy.Document, error) {
	var doc policy.Document
	err := c.call(ctx, func(ctx context.Context, rpc connectorv1.ConnectorClient) error {
		answer, err := rpc.Load(ctx, &connectorv1.LoadRequest{})
		switch {
		case err != nil:
			return err
		case !answer.GetPresent():
			return unavailable(answer.GetUnavailable())
		case answer.GetRevision() == "":
			return status.Error(codes.Internal, "it broke the contract: a document without a revision")
		}
		if gone := tooLarge(answer.GetDocument()); gone != nil {
			return gone
		}
		doc = policy.Document{Content: answer.GetDocument(), Revision: answer.GetRevision()}
		return nil
	})
	return doc, err
}

// Save implements policy.Source.
func (c *Connector) Save(ctx context.Context, document []byte, expected string) (string, error) {
	if gone := tooLarge(document); gone != nil {
		return "", gone
	}
	revision := ""
	err := c.call(ctx, func(ctx context.Context, rpc connectorv1.ConnectorClient) error {
		answer, err := rpc.Save(ctx, &connectorv1.SaveRequest{Document: document, ExpectedRevision: expected})
		if status.Code(err) == codes.DeadlineExceeded {
			return fmt.Errorf("%w: the save was not answered in time", policy.ErrInterrupted)
		}
		if err != nil {
			return err
		}
		switch answer.GetOutcome() {
		case connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED:
			if revision = answer.GetRevision(); revision == "" {
				return status.Error(codes.Internal, "it broke the contract: a save without a revision")
			}
			return nil
		case connectorv1.SaveOutcome_SAVE_OUTCOME_CONFLICT:
			return fmt.Errorf("%w: %s", policy.ErrConflict, answer.GetReason())
		case connectorv1.SaveOutcome_SAVE_OUTCOME_READ_ONLY:
			return fmt.Errorf("%w: %s", policy.ErrReadOnly, answer.GetReason())
		}
		return &policy.Unavailable{Kind: policy.Unreachable, Reason: answer.GetReason()}
	})
	return revision, err
}

// call makes one call to the process and sorts its errors: what is not the contract's is
// ErrInterrupted when the process died of or during it, else Unavailable.
func (c *Connector) call(ctx context.Context, f func(context.Context, connectorv1.ConnectorClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.deps.Timing.Call)
	defer cancel()
	s, err := c.session(ctx)
	if err != nil {
		return err
	}
	ending := context.AfterFunc(s.ctx, cancel)
	defer ending()
	err = f(ctx, s.rpc)
	if err == nil {
		return nil
	}
	st, isStatus := status.FromError(err)
	if !isStatus {
		return err // the contract's, made by f
	}
	switch {
	case st.Code() == codes.DeadlineExceeded && s.ctx.Err() == nil:
		return &policy.Unavailable{Kind: policy.Unreachable, Reason: "the connector does not answer"}
	case st.Code() == codes.Unavailable, st.Code() == codes.Canceled, s.ctx.Err() != nil:
		return fmt.Errorf("%w: %s", policy.ErrInterrupted, statusText(err))
	}
	return &policy.Unavailable{Kind: policy.Unreachable, Reason: "the connector failed: " + statusText(err)}
}

// session waits for a process that can be called.
func (c *Connector) session(ctx context.Context) (*session, error) {
	for {
		c.mu.Lock()
		s, changed, last := c.current, c.changed, c.status.LastError
		c.mu.Unlock()
		if s != nil && s.ctx.Err() == nil {
			return s, nil
		}
		select {
		case <-changed:
		case <-c.ended:
			return nil, &policy.Unavailable{Kind: policy.Unreachable, Reason: "the connector is stopped"}
		case <-ctx.Done():
			return nil, &policy.Unavailable{Kind: policy.Unreachable, Reason: "the connector is not running: " + last}
		}
	}
}

func unavailable(u *connectorv1.Unavailable) *policy.Unavailable {
	kind := policy.Unreachable
	switch u.GetKind() {
	case connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT:
		kind = policy.Absent
	case connectorv1.UnavailableKind_UNAVAILABLE_KIND_AUTH:
		kind = policy.Auth
	case connectorv1.UnavailableKind_UNAVAILABLE_KIND_INVALID:
		kind = policy.Invalid
	case connectorv1.UnavailableKind_UNAVAILABLE_KIND_PERMANENT:
		kind = policy.Permanent
	}
	reason := oneLine(u.GetReason())
	if reason == "" {
		reason = "the source is " + string(kind)
	}
	return &policy.Unavailable{Kind: kind, Reason: reason}
}

// statusText is the message of a gRPC error without the library's decoration.
func statusText(err error) string {
	if st, ok := status.FromError(err); ok {
		if st.Code() == codes.ResourceExhausted && strings.Contains(st.Message(), "larger than max") {
			return fmt.Sprintf("a message is larger than the %d bytes the contract allows, for a document of at most %d: %s", sdk.MaxMessage, sdk.MaxDocument, oneLine(st.Message()))
		}
		return oneLine(st.Message())
	}
	return oneLine(err.Error())
}

package conformance

import (
	"context"
	"fmt"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// SaveSource changes the source through the Save of the connector itself, in a process that is
// not the one under test. It is what Run does by default with a writable connector.
func SaveSource() Source { return &saveSource{} }

// saveSource changes the source through a process of the connector that is not the one under
// test.
type saveSource struct {
	k *kit
	p *child // nil until it is needed
}

const saveOnly = "the source is changed through the connector's own Save; give a source command"

func (s *saveSource) Set(ctx context.Context, document []byte) error {
	if !s.k.about.GetCapabilities().GetWritable() {
		return unsupported("the connector is not writable, and the kit does not know how to change its source; give a source command")
	}
	if s.p == nil || !s.p.alive() {
		p, err := s.k.configured(ctx)
		if err != nil {
			return err
		}
		s.p = p
	}
	for range 10 {
		now, err := s.k.load(ctx, s.p)
		if err != nil {
			return err
		}
		answer, err := s.k.save(ctx, s.p, document, now.GetRevision())
		if err != nil {
			return err
		}
		switch answer.GetOutcome() {
		case connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED:
			return nil
		case connectorv1.SaveOutcome_SAVE_OUTCOME_CONFLICT:
		default:
			return fmt.Errorf("changing the source through Save: %s: %s", outcome(answer), answer.GetReason())
		}
	}
	return fmt.Errorf("changing the source through Save: ten conflicts in a row")
}

func (s *saveSource) close() {
	if s.p != nil {
		s.p.end(s.k)
	}
}

func (s *saveSource) Delete(context.Context) error { return unsupported("%s", saveOnly) }

func (s *saveSource) Break(context.Context) error { return unsupported("%s", saveOnly) }

func (s *saveSource) Restore(context.Context) error { return unsupported("%s", saveOnly) }

func (s *saveSource) Second(context.Context, []byte) (string, error) {
	return "", unsupported("%s", saveOnly)
}

// save calls Save and checks what every answer must hold.
func (k *kit) save(ctx context.Context, p *child, document []byte, expected string) (*connectorv1.SaveResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, k.limit(callLimit))
	defer cancel()
	answer, err := p.rpc.Save(ctx, &connectorv1.SaveRequest{Document: document, ExpectedRevision: expected})
	switch {
	case err != nil:
		return nil, k.callError("Save", err)
	case answer.GetOutcome() == connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED && answer.GetRevision() == "":
		return nil, fmt.Errorf("Save said SAVED without a revision")
	case answer.GetOutcome() != connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED && answer.GetReason() == "":
		return nil, fmt.Errorf("Save said %s without a reason for people", outcome(answer))
	}
	return answer, nil
}

// outcome is the short name of how a save ended.
func outcome(answer *connectorv1.SaveResponse) string {
	switch answer.GetOutcome() {
	case connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED:
		return "SAVED"
	case connectorv1.SaveOutcome_SAVE_OUTCOME_CONFLICT:
		return "CONFLICT"
	case connectorv1.SaveOutcome_SAVE_OUTCOME_READ_ONLY:
		return "READ_ONLY"
	}
	return "UNAVAILABLE"
}

// checkSize holds a document against the limit.
func checkSize(call string, document []byte) error {
	if len(document) > sdk.MaxDocument {
		return fmt.Errorf("%s gave a document of %d bytes; the limit is %d (64 MiB), and a master refuses more", call, len(document), sdk.MaxDocument)
	}
	return nil
}

package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// crowdSize is how many tenants a connector must be able to carry.
const crowdSize = 100_000

var limitCases = []testCase{
	{name: "limits/100k-tenants", about: "100,000 tenants arrive whole, in Watch and Load", run: manyTenants},
	{name: "limits/largest", about: "a document of 64 MiB arrives whole, in Watch and Load", run: largest},
	{name: "limits/too-large", about: "a document beyond 64 MiB is unavailable, with a reason, and the next good one is told", run: tooLarge},
	{name: "limits/save", about: "a Save of 64 MiB reaches the connector: it saves it or says why not", run: largeSave},
}

func manyTenants(ctx context.Context, k *kit) error { return k.carries(ctx, crowd(crowdSize)) }

func largest(ctx context.Context, k *kit) error {
	return k.carries(ctx, padded(document(50), sdk.MaxDocument))
}

// carries puts a large document at the source and wants it in Watch and Load.
func (k *kit) carries(ctx context.Context, large []byte) error {
	p, w, end, err := k.watched(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := k.large(ctx, large); err != nil {
		return err
	}
	if _, err := w.await(ctx, k.limit(bulkLimit), fmt.Sprintf("snapshot of %d bytes", len(large)), func(e *connectorv1.WatchResponse) (bool, error) {
		if u := e.GetUnavailable(); u != nil && u.GetKind() == connectorv1.UnavailableKind_UNAVAILABLE_KIND_INVALID {
			return false, fmt.Errorf("Watch says that %d bytes can't be a document (%s); the limit is %d", len(large), u.GetReason(), sdk.MaxDocument)
		}
		return e.GetSnapshot() != nil && same(e.GetSnapshot().GetDocument(), large), nil
	}); err != nil {
		return err
	}
	answer, err := k.load(ctx, p)
	if err != nil {
		return err
	}
	if !same(answer.GetDocument(), large) {
		return fmt.Errorf("Load gives %d bytes, the source holds %d: %s", len(answer.GetDocument()), len(large), answer.GetUnavailable().GetReason())
	}
	return nil
}

// large puts a document at the source that it may be too small for.
func (k *kit) large(ctx context.Context, document []byte) error {
	err := k.source.Set(ctx, document)
	if err == nil || errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return skipf("the source does not take %d bytes: %v", len(document), err)
}

func tooLarge(ctx context.Context, k *kit) error {
	p, w, end, err := k.watched(ctx)
	if err != nil {
		return err
	}
	defer end()
	if _, viaSave := k.source.(*saveSource); viaSave {
		return skipf("%s", saveOnly)
	}
	if err := k.large(ctx, padded(document(51), sdk.MaxDocument+1)); err != nil {
		return err
	}
	const why = "the source holds more than 64 MiB"
	if _, err := w.unavailable(ctx, k.limit(bulkLimit), document(1), why); err != nil {
		return err
	}
	if err := k.unavailableLoad(ctx, p, why, connectorv1.UnavailableKind_UNAVAILABLE_KIND_UNSPECIFIED); err != nil {
		return err
	}
	good := document(52)
	return k.told(ctx, w, good)
}

func largeSave(ctx context.Context, k *kit) error {
	now, err := k.current(ctx)
	if err != nil {
		return err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	document := padded(document(53), sdk.MaxDocument)
	limited, cancel := context.WithTimeout(ctx, k.limit(bulkLimit))
	defer cancel()
	begin := time.Now()
	answer, err := p.rpc.Save(limited, &connectorv1.SaveRequest{Document: document, ExpectedRevision: now.GetRevision()})
	if err != nil {
		return fmt.Errorf("Save of %d bytes after %s: %w; both sides must accept %d bytes in a message", len(document), time.Since(begin).Round(time.Millisecond),
			k.callError("Save", err), sdk.MaxMessage)
	}
	if answer.GetOutcome() == connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED {
		after, err := k.load(ctx, p)
		if err != nil {
			return err
		}
		if !same(after.GetDocument(), document) {
			return fmt.Errorf("after Save said SAVED Load gives %d bytes, not the %d saved", len(after.GetDocument()), len(document))
		}
		return nil
	}
	if answer.GetReason() == "" {
		return fmt.Errorf("Save said %s without a reason for people", outcome(answer))
	}
	return nil
}

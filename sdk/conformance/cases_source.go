package conformance

import (
	"context"
	"errors"
	"fmt"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

var sourceCases = []testCase{
	{name: "source/absent", about: "a source without a document at the start is unavailable (absent), in Load and Watch, never an empty policy", run: absent},
	{name: "source/deleted", about: "a document deleted while running is unavailable (absent), never an empty policy, and told when it is back", run: deleted},
	{name: "source/down", about: "a source that fails while running is unavailable, never an empty policy, and recovers by itself within 5 s", run: down},
	{name: "source/down-at-start", about: "with a source that is down the connector starts, says unavailable in time, and recovers by itself within 5 s", run: downAtStart},
}

func absent(ctx context.Context, k *kit) error {
	if err := k.needURI(); err != nil {
		return err
	}
	if err := k.source.Delete(ctx); err != nil {
		return err
	}
	const why = "the source holds no document"
	p, err := k.configured(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", why, err)
	}
	defer p.end(k)
	if err := k.unavailableLoad(ctx, p, why, connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT); err != nil {
		return err
	}
	w, err := k.watch(ctx, p, "")
	if err != nil {
		return err
	}
	defer w.close()
	said, err := w.unavailable(ctx, k.limit(eventLimit), nil, why)
	if err != nil {
		return err
	}
	if said.GetKind() != connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT {
		return fmt.Errorf("%s, but Watch says %s, want ABSENT: %s", why, kindName(said), said.GetReason())
	}
	next := document(40)
	return k.told(ctx, w, next)
}

// unavailableLoad asks that Load gives no document; kind UNSPECIFIED allows every kind.
func (k *kit) unavailableLoad(ctx context.Context, p *child, why string, kind connectorv1.UnavailableKind) error {
	answer, err := k.load(ctx, p)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", why, err)
	case answer.GetPresent():
		return invented("Load", why, answer.GetDocument())
	case kind != connectorv1.UnavailableKind_UNAVAILABLE_KIND_UNSPECIFIED && answer.GetUnavailable().GetKind() != kind:
		return fmt.Errorf("%s, but Load says %s, want ABSENT: %s", why, kindName(answer.GetUnavailable()), answer.GetUnavailable().GetReason())
	}
	return nil
}

func kindName(u *connectorv1.Unavailable) string {
	const prefix = len("UNAVAILABLE_KIND_")
	if name := u.GetKind().String(); len(name) > prefix {
		return name[prefix:]
	}
	return u.GetKind().String()
}

func deleted(ctx context.Context, k *kit) error {
	p, w, end, err := k.watched(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := k.source.Delete(ctx); err != nil {
		return err
	}
	const why = "the document was deleted"
	said, err := w.unavailable(ctx, k.limit(eventLimit), document(1), why)
	if err != nil {
		return err
	}
	if said.GetKind() != connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT {
		return fmt.Errorf("%s, but Watch says %s, want ABSENT: %s", why, kindName(said), said.GetReason())
	}
	if err := k.unavailableLoad(ctx, p, why, connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT); err != nil {
		return err
	}
	// The same document as before must be told again: the host was told that it is gone.
	if err := k.source.Set(ctx, document(1)); err != nil {
		return err
	}
	if _, err := w.snapshot(ctx, k.limit(eventLimit), document(1)); err != nil {
		return fmt.Errorf("the document is back as it was: %w", err)
	}
	return nil
}

func down(ctx context.Context, k *kit) (err error) {
	p, w, end, err := k.watched(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := k.source.Break(ctx); err != nil {
		return err
	}
	broken := true
	defer func() {
		if broken {
			err = errors.Join(err, k.source.Restore(context.WithoutCancel(ctx)))
		}
	}()
	const why = "the source is down"
	if _, err := w.unavailable(ctx, k.limit(downLimit), document(1), why); err != nil {
		return err
	}
	if err := k.unavailableLoad(ctx, p, why, connectorv1.UnavailableKind_UNAVAILABLE_KIND_UNSPECIFIED); err != nil {
		return err
	}
	broken = false
	return k.recovers(ctx, p, w)
}

// recovers restores the source and waits until the connector has it again.
func (k *kit) recovers(ctx context.Context, p *child, w *watch) error {
	if err := k.source.Restore(ctx); err != nil {
		return err
	}
	if _, err := w.snapshot(ctx, k.limit(eventLimit), document(1)); err != nil {
		return fmt.Errorf("the source is back: %w", err)
	}
	answer, err := k.load(ctx, p)
	if err != nil {
		return fmt.Errorf("the source is back: %w", err)
	}
	if !same(answer.GetDocument(), document(1)) {
		return fmt.Errorf("the source is back, but Load gives %q, %s", shorten(string(answer.GetDocument())), answer.GetUnavailable().GetReason())
	}
	next := document(41)
	if err := k.source.Set(ctx, next); err != nil {
		return err
	}
	if _, err := w.snapshot(ctx, k.limit(eventLimit), next); err != nil {
		return fmt.Errorf("a change after the source is back: %w", err)
	}
	return nil
}

func downAtStart(ctx context.Context, k *kit) (err error) {
	if _, err := k.current(ctx); err != nil {
		return err
	}
	if err := k.source.Break(ctx); err != nil {
		return err
	}
	broken := true
	defer func() {
		if broken {
			err = errors.Join(err, k.source.Restore(context.WithoutCancel(ctx)))
		}
	}()
	const why = "the source is down"
	p, err := k.configured(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", why, err)
	}
	defer p.end(k)
	if err := k.unavailableLoad(ctx, p, why, connectorv1.UnavailableKind_UNAVAILABLE_KIND_UNSPECIFIED); err != nil {
		return err
	}
	w, err := k.watch(ctx, p, "")
	if err != nil {
		return err
	}
	defer w.close()
	if _, err := w.unavailable(ctx, k.limit(downLimit), nil, why); err != nil {
		return err
	}
	broken = false
	return k.recovers(ctx, p, w)
}

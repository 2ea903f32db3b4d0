package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

var saveCases = []testCase{
	{name: "save/load", about: "what Save says is saved Load gives at once, with that revision, and Watch tells", run: saveLoad},
	{name: "save/conflict", about: "Save that expects another revision answers CONFLICT, and the source stays as it is", run: conflict},
	{name: "save/overtaken", about: "Save after somebody else's change answers CONFLICT, and their change stays", run: overtaken},
	{name: "save/race", about: "of ten Saves at once that expect the same revision one succeeds, and it is the one that is there", run: race},
	{name: "save/create", about: "Save that expects nothing creates the document where there is none, and never replaces one", run: create},
	{name: "save/read-only", about: "a connector that is not writable answers READ_ONLY, and the source stays as it is", run: readOnly},
	{name: "save/down", about: "Save to a source that is down answers UNAVAILABLE in time", run: saveDown},
}

const (
	saved      = connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED
	conflicted = connectorv1.SaveOutcome_SAVE_OUTCOME_CONFLICT
)

// writer starts a connector whose source holds something, for cases that save.
func (k *kit) writer(ctx context.Context) (*child, *connectorv1.LoadResponse, error) {
	if err := k.needURI(); err != nil {
		return nil, nil, err
	}
	if !k.about.GetCapabilities().GetWritable() {
		return nil, nil, skipf("the connector says that it is not writable")
	}
	now, err := k.current(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := k.configured(ctx)
	return p, now, err
}

// stays checks that the source holds what it held.
func (k *kit) stays(ctx context.Context, p *child, before *connectorv1.LoadResponse, after string) error {
	now, err := k.load(ctx, p)
	if err != nil {
		return err
	}
	if now.GetRevision() != before.GetRevision() || !bytes.Equal(now.GetDocument(), before.GetDocument()) {
		return fmt.Errorf("%s the source was changed: it holds %q", after, shorten(string(now.GetDocument())))
	}
	return nil
}

func saveLoad(ctx context.Context, k *kit) error {
	p, now, err := k.writer(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	w, err := k.watch(ctx, p, now.GetRevision())
	if err != nil {
		return err
	}
	defer w.close()
	revision := now.GetRevision()
	for i := range 3 {
		text := document(60 + i)
		answer, err := k.save(ctx, p, text, revision)
		if err != nil {
			return err
		}
		if answer.GetOutcome() != saved {
			return fmt.Errorf("Save that expects the current revision answers %s: %s", outcome(answer), answer.GetReason())
		}
		if answer.GetRevision() == revision {
			return fmt.Errorf("Save of another document gives the revision %q, which was that of the former", revision)
		}
		revision = answer.GetRevision()
		after, err := k.load(ctx, p)
		if err != nil {
			return err
		}
		if after.GetRevision() != revision || !same(after.GetDocument(), text) {
			return fmt.Errorf("Save said revision %q, Load at once gives %q: %q", revision, after.GetRevision(), shorten(string(after.GetDocument())))
		}
	}
	told, err := w.snapshot(ctx, k.limit(eventLimit), document(62))
	if err != nil {
		return err
	}
	if told.GetRevision() != revision {
		return fmt.Errorf("Save said revision %q, Watch tells the same document as %q", revision, told.GetRevision())
	}
	return nil
}

func conflict(ctx context.Context, k *kit) error {
	p, now, err := k.writer(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	for _, expected := range []string{now.GetRevision() + "0", "no such revision", ""} {
		answer, err := k.save(ctx, p, document(70), expected)
		if err != nil {
			return err
		}
		if answer.GetOutcome() != conflicted {
			return fmt.Errorf("Save that expects revision %q where the source holds %q answers %s, want CONFLICT: somebody's change would be lost",
				expected, now.GetRevision(), outcome(answer))
		}
		if err := k.stays(ctx, p, now, "although Save answered CONFLICT"); err != nil {
			return err
		}
	}
	return nil
}

func overtaken(ctx context.Context, k *kit) error {
	p, now, err := k.writer(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	theirs := document(71)
	if err := k.source.Set(ctx, theirs); err != nil {
		return err
	}
	answer, err := k.save(ctx, p, document(72), now.GetRevision())
	if err != nil {
		return err
	}
	if answer.GetOutcome() != conflicted {
		return fmt.Errorf("Save that expects a revision which somebody has replaced answers %s, want CONFLICT: their change is lost", outcome(answer))
	}
	after, err := k.load(ctx, p)
	if err != nil {
		return err
	}
	if !same(after.GetDocument(), theirs) {
		return fmt.Errorf("although Save answered CONFLICT, somebody else's change is gone: the source holds %q", shorten(string(after.GetDocument())))
	}
	return nil
}

func race(ctx context.Context, k *kit) error {
	p, now, err := k.writer(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	const savers = 10
	type result struct {
		n      int
		answer *connectorv1.SaveResponse
		err    error
	}
	for round := range 5 {
		results := make(chan result, savers)
		for n := range savers {
			k.running.Go(func() {
				answer, err := k.save(ctx, p, document(100+savers*round+n), now.GetRevision())
				results <- result{n, answer, err}
			})
		}
		winner, failed := -1, error(nil)
		for range savers {
			r := <-results
			switch {
			case r.err != nil:
				failed = r.err
			case r.answer.GetOutcome() == saved && winner >= 0:
				failed = fmt.Errorf("two of %d Saves at once that expect the same revision were both answered SAVED: one of them is lost", savers)
			case r.answer.GetOutcome() == saved:
				winner = r.n
			case r.answer.GetOutcome() != conflicted:
				failed = fmt.Errorf("one of %d Saves at once answers %s, want SAVED or CONFLICT: %s", savers, outcome(r.answer), r.answer.GetReason())
			}
		}
		switch {
		case failed != nil:
			return failed
		case winner < 0:
			return fmt.Errorf("of %d Saves at once that expect the current revision none was SAVED", savers)
		}
		if now, err = k.load(ctx, p); err != nil {
			return err
		}
		if !same(now.GetDocument(), document(100+savers*round+winner)) {
			return fmt.Errorf("the Save that was answered SAVED is not what the source holds: %q", shorten(string(now.GetDocument())))
		}
	}
	return nil
}

func create(ctx context.Context, k *kit) error {
	p, _, err := k.writer(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	if err := k.source.Delete(ctx); err != nil {
		return err
	}
	text := document(80)
	answer, err := k.save(ctx, p, text, "some revision")
	if err != nil {
		return err
	}
	if answer.GetOutcome() != conflicted {
		return fmt.Errorf("Save that expects a revision where there is no document answers %s, want CONFLICT", outcome(answer))
	}
	if err := k.unavailableLoad(ctx, p, "the document was deleted", connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT); err != nil {
		return err
	}
	if answer, err = k.save(ctx, p, text, ""); err != nil {
		return err
	}
	if answer.GetOutcome() != saved {
		return fmt.Errorf("Save that expects nothing, where there is nothing, answers %s: %s", outcome(answer), answer.GetReason())
	}
	after, err := k.load(ctx, p)
	if err != nil {
		return err
	}
	if after.GetRevision() != answer.GetRevision() || !same(after.GetDocument(), text) {
		return fmt.Errorf("Save created revision %q, Load gives %q", answer.GetRevision(), after.GetRevision())
	}
	return nil
}

func readOnly(ctx context.Context, k *kit) error {
	if err := k.needURI(); err != nil {
		return err
	}
	if k.about.GetCapabilities().GetWritable() {
		return skipf("the connector says that it is writable")
	}
	now, err := k.current(ctx)
	if err != nil {
		return err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	answer, err := k.save(ctx, p, document(90), now.GetRevision())
	if err != nil {
		return err
	}
	if answer.GetOutcome() != connectorv1.SaveOutcome_SAVE_OUTCOME_READ_ONLY {
		return fmt.Errorf("a connector that is not writable answers Save with %s, want READ_ONLY", outcome(answer))
	}
	return k.stays(ctx, p, now, "although Save answered READ_ONLY")
}

func saveDown(ctx context.Context, k *kit) (err error) {
	p, now, err := k.writer(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	if err := k.source.Break(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.source.Restore(context.WithoutCancel(ctx))) }()
	answer, err := k.save(ctx, p, document(91), now.GetRevision())
	if err != nil {
		return err
	}
	if answer.GetOutcome() != connectorv1.SaveOutcome_SAVE_OUTCOME_UNAVAILABLE {
		return fmt.Errorf("the source is down, but Save answers %s, want UNAVAILABLE", outcome(answer))
	}
	return nil
}

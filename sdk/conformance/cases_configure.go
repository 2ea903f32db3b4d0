package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

var configureCases = []testCase{
	{name: "configure/side-effects", about: "Configure changes nothing at the source, and makes nothing where there is nothing", run: sideEffects},
	{name: "configure/notes", about: "an unknown option is refused with a note that names it, and the former configuration stays", run: notes},
	{name: "configure/twice", about: "Configure may come again, also while a Watch is under way", run: twice},
	{name: "configure/replaces", about: "a second Configure replaces the first: calls that begin later use the other source", run: replaces},
}

func sideEffects(ctx context.Context, k *kit) error {
	before, err := k.current(ctx)
	if err != nil {
		return err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	after, err := k.load(ctx, p)
	if err != nil {
		return err
	}
	if after.GetRevision() != before.GetRevision() || !bytes.Equal(after.GetDocument(), before.GetDocument()) {
		return fmt.Errorf("after Configure the source holds revision %q, it was %q", after.GetRevision(), before.GetRevision())
	}
	err = k.source.Delete(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // the half that could be looked at is as it should be
	}
	if err != nil {
		return err
	}
	if err := k.configure(ctx, p, k.uri); err != nil {
		return fmt.Errorf("the source holds no document: %w", err)
	}
	answer, err := k.load(ctx, p)
	if err != nil {
		return err
	}
	if answer.GetPresent() {
		return fmt.Errorf("Configure made a document (%q) where the source held none", shorten(string(answer.GetDocument())))
	}
	return nil
}

// current is what the source holds; the kit puts something there if it can.
func (k *kit) current(ctx context.Context) (*connectorv1.LoadResponse, error) {
	if err := k.needURI(); err != nil {
		return nil, err
	}
	if err := k.source.Set(ctx, document(1)); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return nil, err
	}
	defer p.end(k)
	answer, err := k.load(ctx, p)
	if err != nil {
		return nil, err
	}
	if !answer.GetPresent() {
		return nil, fmt.Errorf("Load gives no document although the source holds one: %s", answer.GetUnavailable().GetReason())
	}
	return answer, nil
}

// unknownOption is one that no connector has.
const unknownOption = "no-such-option-of-the-conformance-kit"

func notes(ctx context.Context, k *kit) error {
	before, err := k.current(ctx)
	if err != nil {
		return err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	options := map[string]string{unknownOption: "x"}
	for name, value := range k.opts.Options {
		options[name] = value
	}
	limited, cancel := context.WithTimeout(ctx, k.limit(callLimit))
	defer cancel()
	answer, err := p.rpc.Configure(limited, &connectorv1.ConfigureRequest{Uri: k.uri, ClusterId: k.opts.ClusterID, Options: options})
	if err != nil {
		return fmt.Errorf("an unknown option must be refused with a note, not an error: %w", k.callError("Configure", err))
	}
	if len(answer.GetNotes()) == 0 {
		if k.takesAnyOption() {
			return skipf("by its options_schema the connector takes any option")
		}
		return fmt.Errorf("Configure accepted the option %q, which its options_schema does not have: an operator's typing error would go unseen", unknownOption)
	}
	named := false
	for _, n := range answer.GetNotes() {
		named = named || n.GetField() == "options."+unknownOption && n.GetMessage() != ""
	}
	if !named {
		return fmt.Errorf("none of the notes %v is about the field %q", answer.GetNotes(), "options."+unknownOption)
	}
	after, err := k.load(ctx, p)
	if err != nil {
		return fmt.Errorf("after a refused Configure: %w", err)
	}
	if after.GetRevision() != before.GetRevision() {
		return fmt.Errorf("after a refused Configure Load gives revision %q, it was %q: the former configuration must stay", after.GetRevision(), before.GetRevision())
	}
	return nil
}

// takesAnyOption reads additionalProperties of the options' schema.
func (k *kit) takesAnyOption() bool {
	var schema struct {
		AdditionalProperties json.RawMessage `json:"additionalProperties"`
	}
	if k.about.GetOptionsSchema() == "" || json.Unmarshal([]byte(k.about.GetOptionsSchema()), &schema) != nil {
		return false
	}
	return string(schema.AdditionalProperties) != "false"
}

func twice(ctx context.Context, k *kit) error {
	before, err := k.current(ctx)
	if err != nil {
		return err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	w, err := k.watch(ctx, p, "")
	if err != nil {
		return err
	}
	defer w.close()
	if _, err := w.snapshot(ctx, k.limit(eventLimit), before.GetDocument()); err != nil {
		return err
	}
	for range 2 {
		if err := k.configure(ctx, p, k.uri); err != nil {
			return fmt.Errorf("the same again: %w", err)
		}
	}
	after, err := k.load(ctx, p)
	if err != nil {
		return err
	}
	if after.GetRevision() != before.GetRevision() {
		return fmt.Errorf("configured again the same way Load gives revision %q, it was %q", after.GetRevision(), before.GetRevision())
	}
	return nil
}

func replaces(ctx context.Context, k *kit) error {
	if _, err := k.current(ctx); err != nil {
		return err
	}
	other := document(2)
	uri, err := k.source.Second(ctx, other)
	if err != nil {
		return err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	if err := k.configure(ctx, p, uri); err != nil {
		return err
	}
	answer, err := k.load(ctx, p)
	if err != nil {
		return err
	}
	if !same(answer.GetDocument(), other) {
		return fmt.Errorf("configured for %s Load still gives %q", uri, shorten(string(answer.GetDocument())))
	}
	w, err := k.watch(ctx, p, "")
	if err != nil {
		return err
	}
	defer w.close()
	if _, err := w.snapshot(ctx, k.limit(eventLimit), other); err != nil {
		return fmt.Errorf("configured for %s: %w", uri, err)
	}
	return nil
}

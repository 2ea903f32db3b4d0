package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// Deps is what a Manager works with; all but SaveTimeout are needed.
type Deps struct {
	Source   Source
	Enforcer Enforcer
	Clock    Clock
	Logger   hclog.Logger
	// SaveTimeout bounds a Put or Delete as a whole; 0 means ten seconds.
	SaveTimeout time.Duration
}

// Manager keeps the policy in force equal to the source's document. Its methods may be called
// concurrently.
type Manager struct {
	Deps
	// turn is held by whoever deals with the source or the enforcer.
	turn chan struct{}
	// edits are the changes saved by us; used with turn held.
	edits edits
	// making is the change being made, if any; used with turn held.
	making *change
	// direct: nothing but the first load was asked of the source by us, so events are in
	// order; used with turn held.
	direct bool

	mu      sync.Mutex
	force   inForce            // guarded by mu; written with turn held
	trouble trouble            // guarded by mu; what is wrong with the document
	last    fault              // guarded by mu; the last thing that was wrong
	counts  map[string]uint64  // guarded by mu; failures by reason
	applied uint64             // guarded by mu
	success time.Time          // guarded by mu
	well    time.Time          // guarded by mu; end of the last trouble
	lost    uint64             // guarded by mu; changes of ours overwritten
	closed  time.Time          // guarded by mu; zero until Close
	cancel  context.CancelFunc // guarded by mu; ends the watch
	watched chan struct{}      // guarded by mu; closed when the watch has ended
}

// inForce is what is being enforced.
type inForce struct {
	known    bool // there is a policy
	revision string
	sum      [sha256.Size]byte
	since    time.Time
	set      []tenant.Policy // sorted by name
}

// trouble is why the policy in force is not the source's document; the zero value is none.
type trouble struct {
	reason string // label: a Kind, "invalid_document", or "empty"
	text   string
	since  time.Time
}

type fault struct {
	text string
	at   time.Time
}

// New makes a Manager that does nothing until started.
func New(deps Deps) *Manager {
	if deps.SaveTimeout == 0 {
		deps.SaveTimeout = 10 * time.Second
	}
	return &Manager{Deps: deps, turn: make(chan struct{}, 1), edits: edits{}, direct: true, counts: map[string]uint64{}}
}

// Start loads the document, puts it in force and begins to watch. An error is one line that
// names the flag, the line and the reason; nothing is running then.
func (m *Manager) Start(ctx context.Context) error {
	if err := m.acquire(ctx); err != nil {
		return err
	}
	defer m.release()
	doc, err := m.Source.Load(ctx)
	var gone *Unavailable
	switch status := m.Source.Status(); {
	case errors.As(err, &gone) && gone.Kind == Absent && status.AbsentIsEmpty:
		m.Logger.Warn("the source holds no tenant quota policy: starting with an empty one", "source", status.Origin, "reason", gone.Reason)
		m.apply(Document{}, [sha256.Size]byte{}, nil, "start")
	case err != nil:
		return fmt.Errorf("%s: failed to load tenant quota policy: %w", status.Origin, err)
	default:
		if err := m.adopt(doc, "start"); err != nil {
			return fmt.Errorf("%s: failed to load tenant quota policy: %w", status.Origin, err)
		}
	}
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancel, m.watched = cancel, make(chan struct{})
	ended := m.watched
	go func() {
		defer close(ended)
		m.Source.Watch(watch, func(e Event) { m.handle(watch, e) })
	}()
	return nil
}

// Close ends the watch and waits for it and for a Put or Delete under way. The policy stays in
// force; the source is the caller's to close.
func (m *Manager) Close() {
	m.mu.Lock()
	cancel, ended := m.cancel, m.watched
	if m.closed.IsZero() {
		m.closed = m.Clock.Now()
	}
	m.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
	m.turn <- struct{}{}
	<-m.turn
}

func (m *Manager) acquire(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Manager) release() { <-m.turn }

// handle deals with one event of the watch.
func (m *Manager) handle(ctx context.Context, e Event) {
	if m.acquire(ctx) != nil {
		return
	}
	defer m.release()
	switch {
	case e.Document == nil && e.Unavailable == nil:
		return
	case m.direct && e.Unavailable != nil:
		m.failed(string(e.Unavailable.Kind), e.Unavailable.Reason)
		return
	case m.direct:
		_ = m.adopt(*e.Document, "watch") // recorded there
		return
	}
	// The event may be older than what we loaded or saved ourselves since: see what is there
	// now. If the connector dies on us meanwhile, it will not tell this event again.
	for pause := hintPause; ctx.Err() == nil; pause = min(2*pause, 20*hintPause) {
		if _, err := m.reload(ctx, "watch"); !errors.Is(err, ErrInterrupted) {
			return
		}
		m.release()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		m.turn <- struct{}{}
	}
}

// hintPause is the first pause before a load is tried again that the connector did not
// survive.
const hintPause = 50 * time.Millisecond

// reload loads the document and puts it in force. Whatever goes wrong with the document is
// recorded; the error is also returned. From the first reload on, events are only hints.
func (m *Manager) reload(ctx context.Context, why string) (Document, error) {
	m.direct = false
	doc, err := m.Source.Load(ctx)
	var gone *Unavailable
	if errors.As(err, &gone) {
		m.failed(string(gone.Kind), gone.Reason)
	}
	if err != nil {
		return Document{}, err
	}
	return doc, m.adopt(doc, why)
}

// adopt puts a document in force unless it is already, or is not valid.
func (m *Manager) adopt(doc Document, why string) error {
	sum := sha256.Sum256(doc.Content)
	m.mu.Lock()
	same := m.force.known && m.force.sum == sum
	if same {
		m.force.revision = doc.Revision
		m.recovered()
	}
	m.mu.Unlock()
	if same {
		return nil
	}
	parsed, err := policydoc.Parse(doc.Content)
	if err != nil {
		reason := "invalid_document"
		if policydoc.Blank(doc.Content) {
			reason = "empty"
		}
		m.failed(reason, err.Error())
		return err
	}
	for _, w := range parsed.Warnings {
		m.Logger.Warn("tenant quota policy: " + w.String())
	}
	set := make([]tenant.Policy, len(parsed.Tenants))
	for i, t := range parsed.Tenants {
		set[i] = tenant.Policy{Name: t.Name, Quota: t.Quota}
	}
	slices.SortFunc(set, func(a, b tenant.Policy) int { return strings.Compare(a.Name, b.Name) })
	m.apply(doc, sum, set, why)
	return nil
}

// apply puts a checked set in force.
func (m *Manager) apply(doc Document, sum [sha256.Size]byte, set []tenant.Policy, why string) {
	now := m.Clock.Now()
	lost := m.edits.undone(set, now, m.making)
	for _, c := range lost {
		m.Logger.Warn("a quota saved through the admin interface was overwritten at the source, probably by somebody who had read the document before",
			"tenant", c.Name, "saved", c.Old, "now", c.New, "revision", doc.Revision)
	}
	m.mu.Lock()
	changes := Diff(m.force.set, set)
	first := !m.force.known
	m.mu.Unlock()
	if first || len(changes) > 0 {
		m.Enforcer.ApplyPolicies(set)
	}
	m.mu.Lock()
	m.force = inForce{known: true, revision: doc.Revision, sum: sum, since: now, set: set}
	m.applied++
	m.success = now
	m.lost += uint64(len(lost))
	m.recovered()
	m.mu.Unlock()
	added, removed, changed := summary(changes)
	m.Logger.Info("tenant quota policy in force", "why", why, "revision", doc.Revision, "sha256", hex.EncodeToString(sum[:]),
		"tenants", len(set), "added", added, "removed", removed, "changed", changed, "what", excerpt(changes))
}

// recovered notes that the document is fine. Callers hold mu.
func (m *Manager) recovered() {
	if m.trouble.reason == "" {
		return
	}
	m.well = m.Clock.Now()
	m.Logger.Info("tenant quota policy: the source is fine again", "was", m.trouble.reason, "after", m.well.Sub(m.trouble.since).Round(time.Millisecond))
	m.trouble = trouble{}
}

// failed notes that there is no valid document to be had; the last good one stays in force.
func (m *Manager) failed(reason, text string) {
	now := m.Clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trouble.reason == reason && m.trouble.text == text {
		return // the same as before is no news
	}
	since := now
	if m.trouble.reason != "" {
		since = m.trouble.since
	}
	m.trouble = trouble{reason: reason, text: text, since: since}
	m.last = fault{text: text, at: now}
	m.counts[reason]++
	if m.force.known {
		m.Logger.Error("tenant quota policy: the last good one stays in force", "reason", reason, "error", text, "in_force", m.force.revision)
	}
}

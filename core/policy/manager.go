package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// Deps is what a Manager works with; the first four are needed.
type Deps struct {
	Source   Source
	Enforcer Enforcer
	Clock    Clock
	Logger   hclog.Logger
	// SaveTimeout bounds a Put, Delete, Replace or Confirm as a whole; 0 means ten seconds.
	SaveTimeout time.Duration
	// Store keeps the policy across restarts; nil keeps none.
	Store Store
	// Optional makes Start succeed whatever is wrong with the source, on the stored policy or,
	// where there is none, without a policy.
	Optional bool
	// Keep is the share of tenants, in percent, that a document of the source has to keep to be
	// put in force without a person's word; 0 turns this guard off.
	Keep int
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
	// stored is what the Store held at the start, until a policy is in force; used with turn
	// held.
	stored *storedSet
	saver  saver

	mu      sync.Mutex
	force   inForce            // guarded by mu; written with turn held
	trouble trouble            // guarded by mu; what is wrong with the document
	held    *held              // guarded by mu; what the guard holds back, with trouble "held"
	last    fault              // guarded by mu; the last thing that was wrong
	counts  map[string]uint64  // guarded by mu; failures by reason
	applied uint64             // guarded by mu
	success time.Time          // guarded by mu
	well    time.Time          // guarded by mu; end of the last trouble
	lost    uint64             // guarded by mu; changes of ours overwritten
	history []Applied          // guarded by mu; oldest first
	closed  time.Time          // guarded by mu; zero until Close
	cancel  context.CancelFunc // guarded by mu; ends the watch
	watched chan struct{}      // guarded by mu; closed when the watch has ended
}

// inForce is what is being enforced.
type inForce struct {
	known    bool // there is a policy
	origin   string
	revision string
	sum      [sha256.Size]byte
	since    time.Time
	stale    time.Time       // of a stored policy: when it was last known to be the source's
	set      []tenant.Policy // sorted by name
	content  []byte
}

// Where the policy in force came from.
const (
	FromSource = "source"
	FromStore  = "stored" // not seen at the source since the start
	FromAbsent = "absent" // the source held none at the start, and that means an empty one
	FromNobody = "none"   // there is no policy yet; all writes are refused
)

// trouble is why the policy in force is not the source's document; the zero value is none.
type trouble struct {
	reason string // label: a Kind, "invalid_document", "empty" or "held"
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
	m := &Manager{Deps: deps, turn: make(chan struct{}, 1), edits: edits{}, direct: true, counts: map[string]uint64{}}
	m.force.origin = FromNobody
	return m
}

// Close ends the watch and waits for it, for a Put or Delete under way, and for what is being
// stored. The policy stays in force; the source is the caller's to close.
func (m *Manager) Close() {
	m.mu.Lock()
	cancel, ended := m.cancel, m.watched
	first := m.closed.IsZero()
	fine := m.trouble.reason == "" && m.Source.Status().State == Ready
	if first {
		m.closed = m.Clock.Now()
	}
	m.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
	m.turn <- struct{}{}
	<-m.turn
	if first && cancel != nil {
		m.stopSaving(fine)
	}
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
		m.lacking(e.Unavailable)
		return
	case m.direct:
		_, _ = m.adopt(*e.Document, "watch", false) // recorded there
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
	doc, err := m.load(ctx)
	if err != nil {
		return Document{}, err
	}
	_, err = m.adopt(doc, why, false)
	return doc, err
}

// load loads the document and records what keeps it away.
func (m *Manager) load(ctx context.Context) (Document, error) {
	m.direct = false
	doc, err := m.Source.Load(ctx)
	var gone *Unavailable
	if errors.As(err, &gone) {
		m.lacking(gone)
	}
	if err != nil {
		return Document{}, err
	}
	return doc, nil
}

// lacking deals with a source that has no document to give. As long as there is no policy at
// all, one that is absent where that means an empty one is taken as such; one that has been
// absent since is as it was.
func (m *Manager) lacking(gone *Unavailable) {
	m.mu.Lock()
	known := m.force.known
	still := known && m.force.origin == FromAbsent && gone.Kind == Absent
	if still {
		m.recovered()
	}
	m.mu.Unlock()
	if still {
		return
	}
	if !known && m.stored == nil && gone.Kind == Absent && m.Source.Status().AbsentIsEmpty {
		m.applyAbsent(gone)
		return
	}
	m.failed(string(gone.Kind), gone.Reason)
}

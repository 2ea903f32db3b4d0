package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// Start loads the document, puts it in force and begins to watch. An error is one line that
// names the flag, the line and the reason; nothing is running then. With Optional there is no
// error but that of ctx: what is wrong is logged and shown by Status.
func (m *Manager) Start(ctx context.Context) error {
	if err := m.acquire(ctx); err != nil {
		return err
	}
	defer m.release()
	m.restore()
	if err := m.first(ctx); err != nil {
		return fmt.Errorf("%s: failed to load tenant quota policy: %w", m.Source.Status().Origin, err)
	}
	m.stored = nil
	m.startSaving()
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

// storedSet is a stored policy that was found valid.
type storedSet struct {
	Stored
	set []tenant.Policy
}

// restore reads the stored policy, if there is one to be used.
func (m *Manager) restore() {
	if m.Store == nil {
		return
	}
	stored, err := m.Store.Load()
	if err == nil && stored != nil {
		var set []tenant.Policy
		if set, _, err = check(stored.Content); err == nil {
			m.stored = &storedSet{Stored: *stored, set: set}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stored != nil {
		m.saver.saved = m.stored.Time
	}
	if err != nil {
		m.saver.unread = err.Error()
		m.Logger.Error("tenant quota policy: the stored one is not used", "error", err)
	}
}

// first puts the first policy in force: the source's, or else what there is instead of it.
func (m *Manager) first(ctx context.Context) error {
	status := m.Source.Status()
	var doc Document
	var err error
	if m.Optional && status.State != Ready && status.LastError != "" {
		err = &Unavailable{Kind: Unreachable, Reason: "the connector is not running: " + status.LastError}
	} else {
		doc, err = m.Source.Load(ctx)
	}
	var gone *Unavailable
	absent := errors.As(err, &gone) && gone.Kind == Absent && status.AbsentIsEmpty
	switch {
	case err == nil:
		if _, err = m.adopt(doc, "start", false); err == nil {
			return nil
		}
	case absent && m.stored == nil:
		m.applyAbsent(gone)
		return nil
	case gone != nil:
		m.failed(string(gone.Kind), gone.Reason)
	default:
		m.failed(string(Unreachable), err.Error())
	}
	// What is held back, or gone from the source while we did not look, is not bad.
	var removal *RemovalError
	if !m.Optional && !absent && !errors.As(err, &removal) {
		return err
	}
	if m.stored == nil {
		m.Logger.Error("starting without a tenant quota policy, all writes are refused until there is one", "source", status.Origin, "error", err)
		return nil
	}
	m.Logger.Warn("starting with the stored tenant quota policy", "source", status.Origin, "because", err, "revision", m.stored.Revision, "stale_since", m.stored.Time)
	m.apply(m.stored.Document, sha256.Sum256(m.stored.Content), m.stored.set, "stored", FromStore)
	return nil
}

// applyAbsent puts an empty policy in force because the source has none, from the beginning.
func (m *Manager) applyAbsent(gone *Unavailable) {
	m.Logger.Warn("the source holds no tenant quota policy: starting with an empty one", "source", m.Source.Status().Origin, "reason", gone.Reason)
	m.apply(Document{}, [sha256.Size]byte{}, nil, "start", FromAbsent)
}

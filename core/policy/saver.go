package policy

import "time"

// saver writes the policy in force to the Store beside everything else, so that a slow disk
// holds nothing up; of a storm it writes what is last.
type saver struct {
	bell  chan struct{} // nil without a Store
	stop  chan struct{}
	ended chan struct{}
	// What follows is guarded by Manager.mu.
	saved  time.Time // of the last success, or what was found is from
	fault  string    // of the last save, "" if it succeeded
	unread string    // why what was found is not used; a save ends it
}

// ring asks for a save.
func (s *saver) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// startSaving begins to save, and saves what is in force. It is called with turn held.
func (m *Manager) startSaving() {
	if m.Store == nil {
		return
	}
	s := saver{bell: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	m.mu.Lock()
	s.saved, s.unread = m.saver.saved, m.saver.unread
	m.saver = s
	m.mu.Unlock()
	s.ring()
	go func() {
		defer close(s.ended)
		for {
			select {
			case <-s.bell:
				m.keepForce()
			case <-s.stop:
				select {
				case <-s.bell:
					m.keepForce()
				default:
				}
				return
			}
		}
	}()
}

// stopSaving ends it after what is asked for already. When the source was fine until now, that
// is noted.
func (m *Manager) stopSaving(fine bool) {
	if m.saver.bell == nil {
		return
	}
	if fine {
		m.saver.ring()
	}
	close(m.saver.stop)
	<-m.saver.ended
}

// keepForce saves the policy in force if it is the source's.
func (m *Manager) keepForce() {
	m.mu.Lock()
	f, now := m.force, m.Clock.Now()
	if m.trouble.reason != "" {
		now = f.since
		if m.trouble.since.After(now) {
			now = m.trouble.since
		}
	}
	m.mu.Unlock()
	if !f.known || f.origin != FromSource {
		return
	}
	err := m.Store.Save(Stored{Document: Document{Content: f.content, Revision: f.revision}, Time: now})
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.saver.saved, m.saver.fault, m.saver.unread = now, "", ""
		return
	}
	if m.saver.fault == "" {
		m.Logger.Error("tenant quota policy: it could not be stored, a restart with the source away would start on an older one", "error", err)
	}
	m.saver.fault = err.Error()
}

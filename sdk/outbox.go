package sdk

import "sync"

// outbox holds the newest event of a Watch until it can be sent. It is the Sink.
type outbox struct {
	mu     sync.Mutex
	doc    *Document    // guarded by mu; the pending snapshot
	why    *Unavailable // guarded by mu; the pending unavailability
	last   string       // guarded by mu; revision of the newest snapshot told or known, "" after an unavailability
	lastUn Unavailable  // guarded by mu; the newest unavailability told, zero after a snapshot
	bell   chan struct{}
}

func newOutbox(from string) *outbox { return &outbox{last: from, bell: make(chan struct{}, 1)} }

func (o *outbox) Snapshot(doc Document) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if doc.Revision == o.last && o.last != "" {
		return
	}
	o.doc, o.why = &doc, nil
	o.last, o.lastUn = doc.Revision, Unavailable{}
	o.ring()
}

func (o *outbox) Unavailable(why *Unavailable) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if *why == o.lastUn && o.last == "" {
		return
	}
	copied := *why
	o.doc, o.why = nil, &copied
	o.last, o.lastUn = "", copied
	o.ring()
}

func (o *outbox) ring() {
	select {
	case o.bell <- struct{}{}:
	default:
	}
}

// take returns what is pending; both are nil when nothing is.
func (o *outbox) take() (*Document, *Unavailable) {
	o.mu.Lock()
	defer o.mu.Unlock()
	doc, why := o.doc, o.why
	o.doc, o.why = nil, nil
	return doc, why
}

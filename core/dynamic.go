package core

import (
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// Further copies of objects that are read often. Reads are counted by key in windows of fixed length;
// the read that makes an object hot puts it in line; a background step proposes a copy of it: it
// chooses source and target, reserves the object for a while and asks the source's client for the copy by a
// task. The client then calls DynamicCopyStart and names the proposal.

const (
	dynamicPeriod   = 100 * time.Millisecond
	dynamicBatch    = 64    // objects considered at each step
	dynamicWaiting  = 50000 // objects that may wait for that
	dynamicKeys     = 50000 // objects whose reads are counted
	proposalTTL     = int64(30 * time.Second)
	dynamicCooldown = int64(30 * time.Second) // between two proposals for one object
	strippedPause   = int64(60 * time.Second) // after making room took a replica of the object
	dynamicFill     = 0.85                    // how full a target may be afterwards
)

// objectName is a tenant and a key.
type objectName struct{ tenant, key string }

// dynamic is the state of dynamic replication; nil when that is off. Its methods may be called on nil.
type dynamic struct {
	window    int64 // nanoseconds
	threshold int   // reads in a window that make an object hot
	most      int   // replicas in memory
	enforce   bool

	heat    [heatStripes]heatStripe
	counted atomic.Int64 // keys in heat

	mu        sync.Mutex // a leaf
	waiting   []objectName
	inLine    map[objectName]bool
	proposals map[objectName]*proposal
	expiring  []*proposal          // in the order they were made
	pauses    map[objectName]int64 // until when no copy is proposed
	swept     int64                // when what is over was last forgotten

	hot, proposed, begun, completed, failed, expired atomic.Uint64
}

// heatStripes is how many parts the counters have, so that readers don't wait for each other.
const heatStripes = 64

type heatStripe struct {
	mu   sync.Mutex                // a leaf
	keys map[objectName]*heatCount // an entry is not stored again: that would store the name anew, which may alias a request
	_    [40]byte
}

type heatCount struct {
	since int64 // when the window began
	reads int
}

// proposal is a copy that the master wants and nobody has begun.
type proposal struct {
	Proposal
	name           objectName
	object         object.Ref
	source, target string       // names of segments
	owner          segment.UUID // of the source
	task           segment.UUID
	until          int64
}

func newDynamic(c *DynamicReplicationConfig) *dynamic {
	if c.Mode == ReplicationOff {
		return nil
	}
	d := &dynamic{
		window:    c.HeatWindow.Nanoseconds(),
		threshold: int(max(1, math.Ceil(c.AdmissionQPS*c.HeatWindow.Seconds()))),
		most:      c.MaxReplicas,
		enforce:   c.Mode == ReplicationEnforce,
		inLine:    make(map[objectName]bool),
		proposals: make(map[objectName]*proposal),
		pauses:    make(map[objectName]int64),
	}
	for i := range d.heat {
		d.heat[i].keys = make(map[objectName]*heatCount)
	}
	return d
}

// stableHash is the hash by which choices are made that have to come out the same every time: FNV-1a,
// its bits mixed, since names often differ in the last letter only.
func stableHash(parts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, p := range parts {
		for i := range len(p) {
			h = (h ^ uint64(p[i])) * 1099511628211
		}
		h *= 1099511628211 // a zero byte between the parts
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return h ^ h>>33
}

func (d *dynamic) stripe(n objectName) *heatStripe {
	return &d.heat[stableHash(n.tenant, n.key)%heatStripes]
}

// count counts a read and reports whether it is the one that makes the object hot. n may alias a
// request.
func (d *dynamic) count(n objectName, now int64) bool {
	s := d.stripe(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.keys[n]
	if c == nil {
		if d.counted.Load() >= dynamicKeys {
			return false // the step makes room
		}
		d.counted.Add(1)
		c = &heatCount{since: now}
		s.keys[objectName{strings.Clone(n.tenant), strings.Clone(n.key)}] = c
	} else if now-c.since >= d.window {
		*c = heatCount{since: now}
	}
	c.reads++
	return c.reads == d.threshold
}

// isHot reports whether an object has been read often enough in the window that is open.
func (d *dynamic) isHot(n objectName, now int64) bool {
	s := d.stripe(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.keys[n]
	return c != nil && now-c.since < d.window && c.reads >= d.threshold
}

// sweep forgets pauses that are over and the counts of windows that have ended, once a second.
func (d *dynamic) sweep(now int64) {
	d.mu.Lock()
	due := now-d.swept >= int64(time.Second)
	if due {
		d.swept = now
		maps.DeleteFunc(d.pauses, func(_ objectName, until int64) bool { return now >= until })
	}
	d.mu.Unlock()
	for i := 0; due && i < len(d.heat); i++ {
		s := &d.heat[i]
		s.mu.Lock()
		for n, c := range s.keys {
			if now-c.since >= d.window {
				delete(s.keys, n)
				d.counted.Add(-1)
			}
		}
		s.mu.Unlock()
	}
}

// await puts an object in line for a proposal. n may alias a request.
func (d *dynamic) await(n objectName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.inLine[n] && len(d.waiting) < dynamicWaiting {
		n = objectName{strings.Clone(n.tenant), strings.Clone(n.key)}
		d.inLine[n] = true
		d.waiting = append(d.waiting, n)
	}
}

// next takes the first of those that wait.
func (d *dynamic) next() []objectName {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(d.waiting), dynamicBatch)
	batch := append([]objectName(nil), d.waiting[:n]...)
	d.waiting = append(d.waiting[:0], d.waiting[n:]...)
	clear(d.waiting[len(d.waiting):cap(d.waiting)])
	for _, name := range batch {
		delete(d.inLine, name)
	}
	return batch
}

// live returns the proposal for an object, nil if there is none, it has expired, or the object that it
// was for is not there any more. d.mu is held.
func (d *dynamic) live(n objectName, o object.Ref, now int64) *proposal {
	p := d.proposals[n]
	if p == nil || p.object != o || now >= p.until {
		return nil
	}
	return p
}

// reserved reports whether the master is about to copy the object.
func (d *dynamic) reserved(tenant, key string, o object.Ref, now int64) bool {
	if d == nil || !d.enforce {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live(objectName{tenant, key}, o, now) != nil
}

// find returns a copy of the proposal for an object.
func (d *dynamic) find(tenant, key string, o object.Ref, now int64) (proposal, bool) {
	if d == nil || !d.enforce {
		return proposal{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.live(objectName{tenant, key}, o, now); p != nil {
		return *p, true
	}
	return proposal{}, false
}

// drop forgets a proposal, whose copy has begun or can't.
func (d *dynamic) drop(n objectName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.proposals, n)
}

// enter makes a proposal known unless the object is resting.
func (d *dynamic) enter(p *proposal, now int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now < d.pauses[p.name] || d.live(p.name, p.object, now) != nil {
		return false
	}
	d.pauses[p.name] = now + dynamicCooldown
	d.proposals[p.name] = p
	d.expiring = append(d.expiring, p)
	return true
}

// rewritten is told that an object is being written anew in the same place: a proposal for it is about
// another version now.
func (d *dynamic) rewritten(tenant, key string) {
	if d == nil || !d.enforce {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.proposals[objectName{tenant, key}]; p != nil {
		p.Epoch++
	}
}

// stripped is told that an object has lost replicas because room was needed: no copy is proposed for
// a while.
func (d *dynamic) stripped(tenant, key string, now int64) {
	if d == nil || !d.enforce {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pauses) < dynamicKeys {
		d.pauses[objectName{strings.Clone(tenant), strings.Clone(key)}] = now + strippedPause
	}
}

// expire takes out the proposals that nobody has begun in time.
func (d *dynamic) expire(now int64) (expired []*proposal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for n < len(d.expiring) && now >= d.expiring[n].until {
		p := d.expiring[n]
		if d.proposals[p.name] == p {
			delete(d.proposals, p.name)
			expired = append(expired, p)
		}
		n++
	}
	d.expiring = append(d.expiring[:0], d.expiring[n:]...)
	clear(d.expiring[len(d.expiring):cap(d.expiring)])
	return expired
}

// DynamicStat counts what dynamic replication did since start.
type DynamicStat struct {
	Hot                         uint64 // times an object was read often enough
	Proposed                    uint64 // copies that were asked for
	Begun, Completed            uint64 // of those
	Failed                      uint64 // begun and taken back, lost or timed out
	Expired                     uint64 // not begun in time
	Waiting, Reserved, KeysSeen int    // now
}

func (d *dynamic) stat() DynamicStat {
	if d == nil {
		return DynamicStat{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return DynamicStat{
		Hot: d.hot.Load(), Proposed: d.proposed.Load(), Begun: d.begun.Load(), Completed: d.completed.Load(),
		Failed: d.failed.Load(), Expired: d.expired.Load(),
		Waiting: len(d.waiting), Reserved: len(d.proposals), KeysSeen: int(d.counted.Load()),
	}
}

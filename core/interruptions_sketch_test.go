package core_test

import (
	"slices"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
)

// sketch is what becomes of one object and of its charge, written down in the plainest way: bytes times
// complete replicas in memory, and what is in flight. It is told where replicas are put, and knows
// nothing of accounts, ledgers, shards or locks.
type sketch struct {
	now     int64
	clients map[uint64]*sketchClient // those that lend memory, each one segment
	strict  bool
	closed  bool // the tenant has no policy

	exists                       bool
	size                         uint64
	owner                        uint64
	started, lease               int64
	replicas                     []sketchReplica
	committed, pending, replaced uint64
	work                         *sketchWork
	promotion                    *sketchTier
	offload                      *sketchTier
	parked                       []sketchParked
}

type sketchClient struct {
	mounted, disk              bool
	silent, suspected, offline bool
	ping, graceEnds            int64 // graceEnds 0 = none
}

type sketchReplica struct {
	at       uint64 // whose segment, or disk
	complete bool
	staged   bool // of the work, or of the promotion
	promoted bool // of the promotion
	disk     bool // on the client's disk, where it costs nothing
}

// sketchWork is a copy or move that is under way.
type sketchWork struct {
	client, source uint64
	move           bool
	targets        int
	started        int64
}

// sketchTier is a promotion, or an offload that its client has been told of or not.
type sketchTier struct {
	client, source uint64
	placed, taken  bool
	started        int64
}

type sketchParked struct {
	at    uint64
	size  uint64
	until int64
}

const (
	sketchDiscard = int64(30 * time.Second)
	sketchRelease = int64(600 * time.Second)
	sketchTTL     = int64(10 * time.Second)
)

func newSketch(strict bool, now int64, clients uint64) *sketch {
	s := &sketch{strict: strict, now: now, clients: map[uint64]*sketchClient{}}
	for n := range clients {
		s.clients[n+1] = &sketchClient{mounted: true, ping: now}
	}
	return s
}

// charged is what the tenant is charged.
func (s *sketch) charged() uint64 { return s.committed + s.pending + s.replaced + s.works() }

// works is what is charged for the replicas that are being made. One that is lost costs nothing any more.
func (s *sketch) works() uint64 { return s.size * s.count(staged) }

// allocated is how many bytes of memory are in use.
func (s *sketch) allocated() uint64 {
	n := s.size * s.count(inMemory)
	for _, p := range s.parked {
		n += p.size
	}
	return n
}

func (s *sketch) count(match func(sketchReplica) bool) (n uint64) {
	for _, r := range s.replicas {
		if match(r) {
			n++
		}
	}
	return n
}

func (s *sketch) writing() bool {
	return s.count(func(r sketchReplica) bool { return !r.complete && !r.staged }) > 0
}

func (s *sketch) holds(at uint64) bool {
	return s.count(func(r sketchReplica) bool { return r.at == at && !r.disk }) > 0
}

func (s *sketch) drop(match func(sketchReplica) bool) int {
	before := len(s.replicas)
	s.replicas = slices.DeleteFunc(s.replicas, match)
	return before - len(s.replicas)
}

// park takes replicas away whose memory is kept until an instant.
func (s *sketch) park(match func(sketchReplica) bool, until int64) {
	for _, r := range s.replicas {
		if match(r) && !r.disk {
			s.parked = append(s.parked, sketchParked{r.at, s.size, until})
		}
	}
	s.drop(match)
}

// settle charges what is there after replicas have come or gone.
func (s *sketch) settle() {
	own := s.count(func(r sketchReplica) bool { return !r.staged && !r.disk })
	switch {
	case len(s.replicas) == 0:
		s.exists, s.size, s.lease, s.work, s.promotion, s.offload = false, 0, 0, nil, nil, nil
		s.committed, s.pending, s.replaced = 0, 0, 0
	case s.count(func(r sketchReplica) bool { return unfinished(r) && !r.disk }) > 0:
		s.committed = min(s.committed, s.size*own)
	default:
		s.committed, s.pending, s.replaced = s.size*own, 0, 0
	}
}

func all(sketchReplica) bool           { return true }
func inMemory(r sketchReplica) bool    { return !r.disk }
func ofCopy(r sketchReplica) bool      { return r.staged && !r.promoted }
func ofPromotion(r sketchReplica) bool { return r.staged && r.promoted }
func unfinished(r sketchReplica) bool  { return !r.complete && !r.staged }
func staged(r sketchReplica) bool      { return r.staged }

func (s *sketch) gone() {
	s.drop(all)
	s.settle()
}

// Segments, clients and time.

func (s *sketch) placeable(n uint64) bool {
	c := s.clients[n]
	return c.mounted && !c.suspected && c.graceEnds == 0
}

func (s *sketch) unmount(n uint64) {
	s.clients[n].mounted, s.clients[n].graceEnds = false, 0
	here := func(r sketchReplica) bool { return r.at == n && !r.disk }
	s.parked = slices.DeleteFunc(s.parked, func(p sketchParked) bool { return p.at == n })
	if s.exists {
		lost := s.count(func(r sketchReplica) bool { return here(r) && unfinished(r) })
		s.pending -= min(s.pending, s.size*lost)
		s.drop(here)
		s.settle()
	}
}

// second lets a second pass.
func (s *sketch) second() {
	s.now += int64(time.Second)
	for _, c := range s.clients {
		if !c.silent && !c.offline {
			c.ping, c.suspected = s.now, false
		}
	}
	s.step()
}

// step does what is due by now.
func (s *sketch) step() {
	for n, c := range s.clients {
		switch silence := s.now - c.ping; {
		case silence > 3*sketchTTL && !c.offline:
			c.offline = true
			s.unmount(n)
			s.unmountDisk(n)
		case silence > sketchTTL:
			c.suspected = true
		}
	}
	for n, c := range s.clients {
		if c.mounted && c.graceEnds != 0 && c.graceEnds <= s.now {
			s.unmount(n)
		}
	}
	if s.exists && s.writing() && s.started+sketchRelease < s.now {
		s.drop(unfinished)
		s.settle()
	}
	if s.work != nil && s.work.started+sketchRelease < s.now {
		s.park(ofCopy, s.now+sketchRelease)
		s.work = nil
		s.settle()
	}
	if s.promotion != nil && s.promotion.started+sketchRelease < s.now {
		s.park(ofPromotion, s.now+sketchRelease)
		s.promotion = nil
		s.settle()
	}
	if s.offload != nil && s.offload.started+sketchRelease < s.now {
		s.offload = nil
	}
	s.release()
}

// release frees the memory that was kept long enough.
func (s *sketch) release() {
	s.parked = slices.DeleteFunc(s.parked, func(p sketchParked) bool { return p.until < s.now })
}

// effective is 0 where no memory is lent any more, and otherwise more than is ever charged here.
func (s *sketch) effective() int {
	n := 0
	for _, c := range s.clients {
		if c.mounted {
			n++
		}
	}
	return n
}

// Writes.

func (s *sketch) put(client, size, n uint64, placed []uint64) errcode.Code {
	if s.closed {
		return errcode.TenantNotRegistered
	}
	if s.exists {
		if !s.writing() || s.now <= s.started+sketchDiscard || s.count(func(r sketchReplica) bool { return r.complete }) > 0 {
			if s.readable() > 0 {
				s.lease = max(s.lease, s.now+sketchTTL) // who hears that it is there is going to read it
			}
			return errcode.ObjectAlreadyExists
		}
		s.park(unfinished, s.started+sketchRelease)
		s.settle()
	}
	return s.admit(client, size, n, placed)
}

func (s *sketch) upsert(client, size, n uint64, placed []uint64) errcode.Code {
	canceled := false // an offload that nobody has begun
	if s.closed {
		return errcode.TenantNotRegistered
	}
	switch { // nothing has changed then
	case !s.exists:
	case s.work != nil || s.promotion != nil || s.offload != nil && s.offload.taken:
		return errcode.ObjectHasReplicationTask
	case s.lease > s.now && s.count(func(r sketchReplica) bool { return r.disk && (r.complete || !s.writing()) }) > 0:
		return errcode.ObjectHasLease
	}
	if s.exists && s.writing() {
		s.park(unfinished, s.started+sketchRelease)
		s.settle()
	}
	if s.exists {
		if size == s.size && s.lease <= s.now && s.count(inMemory) > 0 {
			if s.count(func(r sketchReplica) bool { return s.clients[r.at].suspected }) > 0 {
				return errcode.UnavailableInStatus
			}
			s.offload = nil
			for i := range s.replicas {
				s.replicas[i].complete = false
			}
			s.owner, s.started = client, s.now
			return errcode.OK
		}
		canceled, s.offload = s.offload != nil, nil
	}
	code := s.admit(client, size, n, placed)
	if code != errcode.OK && canceled {
		s.queueOffload()
	}
	return code
}

// admit enters a write whose replicas were put somewhere. Only where no memory is lent any more the
// quota is in its way.
func (s *sketch) admit(client, size, n uint64, placed []uint64) errcode.Code {
	placeable := false
	for n := range s.clients {
		placeable = placeable || s.placeable(n)
	}
	switch {
	case s.strict && s.effective() == 0:
		return errcode.TenantQuotaExceeded
	case !placeable:
		return errcode.NoAvailableHandle
	}
	var old uint64
	if s.exists {
		old = s.committed
		s.park(all, s.now+sketchRelease)
	}
	s.exists, s.size, s.owner, s.started, s.lease = true, size, client, s.now, 0
	s.committed, s.pending, s.replaced = 0, size*uint64(len(placed)), old
	s.replicas = nil
	for _, at := range placed {
		s.replicas = append(s.replicas, sketchReplica{at: at})
	}
	return errcode.OK
}

func (s *sketch) end(client uint64) errcode.Code {
	switch {
	case !s.exists:
		return errcode.ObjectNotFound
	case s.owner != client:
		return errcode.IllegalClient
	case !s.writing():
		if s.count(inMemory) == 0 || s.count(staged) > 0 {
			return errcode.InvalidWrite // there is none in memory, or a copy, move or promotion is making one
		}
	case s.count(func(r sketchReplica) bool { return unfinished(r) && !r.disk }) > 0:
		for i := range s.replicas {
			s.replicas[i].complete = s.replicas[i].complete || !s.replicas[i].disk
		}
		s.drop(func(r sketchReplica) bool { return r.disk && !r.complete }) // out of date
		s.settle()
		s.lease = max(s.lease, s.now)
		s.queueOffload()
	}
	return errcode.OK
}

func (s *sketch) revoke(client uint64) errcode.Code {
	switch {
	case !s.exists:
		return errcode.ObjectNotFound
	case s.owner != client:
		return errcode.IllegalClient
	case !s.writing():
		return errcode.InvalidWrite
	}
	s.drop(unfinished)
	s.settle()
	return errcode.OK
}

// Reads and removal.

func (s *sketch) readable() uint64 {
	return s.count(func(r sketchReplica) bool { return r.complete && !s.clients[r.at].suspected })
}

func (s *sketch) read() errcode.Code {
	switch {
	case !s.exists:
		return errcode.ObjectNotFound
	case s.readable() == 0:
		return errcode.ReplicaIsNotReady
	}
	s.lease = max(s.lease, s.now+sketchTTL)
	return errcode.OK
}

func (s *sketch) remove(force bool) errcode.Code {
	switch {
	case !s.exists:
		return errcode.ObjectNotFound
	case !force && s.lease > s.now:
		return errcode.ObjectHasLease
	case s.count(func(r sketchReplica) bool { return !r.complete }) > 0:
		return errcode.ReplicaIsNotReady
	case s.work != nil:
		return errcode.ObjectHasReplicationTask
	}
	s.gone()
	return errcode.OK
}

// clear is BatchReplicaClear, of one segment or with 0 of all.
func (s *sketch) clear(client, at uint64) bool {
	if !s.exists || s.owner != client || s.lease > s.now || at == 0 && s.count(func(r sketchReplica) bool { return !r.complete }) > 0 {
		return false
	}
	n := s.drop(func(r sketchReplica) bool { return at == 0 || r.complete && r.at == at && !r.disk })
	s.settle()
	return n > 0
}

func (s *sketch) evictable(r sketchReplica) bool {
	pinned := s.work != nil && r.at == s.work.source || s.offload != nil && r.at == s.offload.source
	return !r.disk && r.complete && !pinned && !s.clients[r.at].suspected && !s.writing() && s.lease <= s.now
}

// evict drops what can be evicted, and returns how many bytes those were.
func (s *sketch) evict() uint64 {
	size := s.size
	victims := map[sketchReplica]bool{}
	for _, r := range s.replicas {
		victims[r] = s.evictable(r)
	}
	n := s.drop(func(r sketchReplica) bool { return victims[r] })
	if n > 0 {
		s.settle()
	}
	return size * uint64(n)
}

// Copies and moves.

// replicate is CopyStart or MoveStart, which for a move has one target.
func (s *sketch) replicate(client, source uint64, targets []uint64, move bool) errcode.Code {
	switch c := s.clients[client]; {
	case s.closed && !move:
		return errcode.TenantNotRegistered
	case c == nil || c.suspected || c.offline:
		return errcode.UnavailableInStatus
	}
	for _, at := range targets {
		switch c := s.clients[at]; {
		case !c.mounted:
			return errcode.SegmentNotFound
		case c.graceEnds != 0 || c.suspected:
			return errcode.UnavailableInStatus
		}
	}
	switch {
	case !s.exists:
		return errcode.ObjectNotFound
	case s.work != nil:
		return errcode.ObjectHasReplicationTask
	case s.count(func(r sketchReplica) bool { return r.at == source && r.complete && !r.disk }) == 0:
		return errcode.ReplicaNotFound
	case s.clients[source].suspected:
		return errcode.UnavailableInStatus
	case s.closed:
		return errcode.TenantNotRegistered
	}
	missing := slices.DeleteFunc(slices.Clone(targets), s.holds)
	for _, at := range missing {
		s.replicas = append(s.replicas, sketchReplica{at: at, staged: true})
	}
	s.work = &sketchWork{client, source, move, len(missing), s.now}
	return errcode.OK
}

// finish is the end of a copy or move, or with revoke its revocation.
func (s *sketch) finish(client uint64, move, revoke bool) errcode.Code {
	w := s.work
	switch c := s.clients[client]; {
	case c == nil || c.offline:
		return errcode.UnavailableInStatus
	case !s.exists:
		return errcode.ObjectNotFound
	case w == nil:
		return errcode.ObjectNoReplicationTask
	case w.client != client:
		return errcode.IllegalClient
	case w.move != move:
		return errcode.InvalidParams
	}
	defer s.settle()
	s.work = nil
	if revoke || !s.holds(w.source) {
		s.drop(ofCopy)
		if revoke {
			return errcode.OK
		}
		return errcode.ReplicaIsGone
	}
	made := int(s.count(ofCopy))
	for i := range s.replicas {
		if r := &s.replicas[i]; ofCopy(*r) {
			r.staged, r.complete = false, true
		}
	}
	if made < w.targets || move && s.count(inMemory) == 1 {
		return errcode.ReplicaIsGone
	}
	if move {
		s.park(func(r sketchReplica) bool { return r.at == w.source && !r.disk }, s.now+sketchRelease)
	}
	return errcode.OK
}

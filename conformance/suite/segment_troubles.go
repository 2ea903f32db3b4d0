package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// trouble is one thing that goes wrong.
type trouble struct {
	name     string
	protocol string // the only one it can happen with; "" = any
	named    bool   // it needs a metadata store
	do       func(ctx context.Context, s *segmentStage) error
}

// What transfers may fail with.
var (
	gone     = []any{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED, segment.ErrNotFound, retried}
	rejected = []any{segment.ErrRejected}
	overdue  = []any{context.DeadlineExceeded}
)

// retried is what an adapter says of a peer that doesn't answer, refused what it says of a peer that won't have it.
const (
	retried = `retry counter exceeded|transport retry`
	refused = `remote access error|remote invalid request|REM_ACCESS`
)

var troubles = []trouble{
	{"the owner is killed", "", false, ownerKilled},
	{"the owner is stopped", segment.ProtocolTCP, false, ownerStopped},
	{"the owner is stopped, its memory is still reached", segment.ProtocolRDMA, false, ownerStoppedReached},
	{"the owner was stopped before anybody knew it", "", false, ownerStoppedBefore},
	{"the owner takes its memory back", "", false, memoryTakenBack},
	{"the owner leaves in order", "", false, ownerLeaves},
	{"a new owner has the name, memory is sought where the old one had it", "", true, newOwner},
	{"a new owner has the name, and the store goes on telling of the old one", "", true, oldDescriptor},
	{"addresses beside the memory, of an owner who says he has them", "", false, outOfRange},
	{"a user is killed", "", false, func(ctx context.Context, s *segmentStage) error { return userGone(ctx, s, true) }},
	{"a user is stopped", "", false, func(ctx context.Context, s *segmentStage) error { return userGone(ctx, s, false) }},
	{"many connect and say nothing", "", false, idlers},
	{"the connection is reset", segment.ProtocolTCP, false, func(ctx context.Context, s *segmentStage) error { return connectionEnds(ctx, s, reset, gone) }},
	{"the connection is closed", segment.ProtocolTCP, false, func(ctx context.Context, s *segmentStage) error { return connectionEnds(ctx, s, closes, gone) }},
	{"the connection goes silent", segment.ProtocolTCP, false, func(ctx context.Context, s *segmentStage) error { return connectionEnds(ctx, s, silence, overdue) }},
	{"the answers are garbled", segment.ProtocolTCP, false, answersGarbled},
	{"the handshake is reset", "", false, func(ctx context.Context, s *segmentStage) error { return handshakeEnds(ctx, s, reset) }},
	{"the handshake is closed", "", false, func(ctx context.Context, s *segmentStage) error { return handshakeEnds(ctx, s, closes) }},
	{"the handshake goes silent", "", false, func(ctx context.Context, s *segmentStage) error { return handshakeEnds(ctx, s, silence) }},
	{"the handshake is garbled", "", false, func(ctx context.Context, s *segmentStage) error { return handshakeEnds(ctx, s, garbled) }},
	{"a port goes down, the other one stays", segment.ProtocolRDMA, false, portDown},
	{"all ports go down", segment.ProtocolRDMA, false, portsDown},
	{"keys are wrong", segment.ProtocolRDMA, false, wrongKeys},
}

func ownerKilled(ctx context.Context, s *segmentStage) error {
	c, err := s.carrier(between{})
	if err != nil {
		return err
	}
	w := s.traffic(ctx, c)
	if err := s.underway(w); err != nil {
		return err
	}
	s.child.kill()
	return s.failed(w, gone...)
}

// ownerStopped: what a stopped owner has not taken off its connections it takes when it goes on. After that the
// connections are no more, and nothing comes late.
func ownerStopped(ctx context.Context, s *segmentStage) error {
	before, err := s.child.ask(childOrder{Do: "holds"})
	if err != nil {
		return err
	}
	c, err := s.carrier(between{})
	if err != nil {
		return err
	}
	w := s.traffic(ctx, c)
	if err := s.underway(w); err != nil {
		return err
	}
	if err := s.child.halt(); err != nil {
		return err
	}
	if err := s.failed(w, overdue...); err != nil {
		return err
	}
	if err := s.child.resume(); err != nil {
		return err
	}
	if err := s.settled(before); err != nil {
		return err
	}
	if err := s.ground.verify(); err != nil {
		return err
	}
	return s.well(ctx, c)
}

// settled waits until the child holds no more than before.
func (s *segmentStage) settled(before childAnswer) error {
	var now childAnswer
	var err error
	if !await(10*time.Second, func() bool {
		now, err = s.child.ask(childOrder{Do: "holds"})
		return err != nil || now.Descriptors <= before.Descriptors && now.Goroutines <= before.Goroutines
	}) {
		return fmt.Errorf("the owner holds %d descriptors and %d goroutines, %d and %d before", now.Descriptors, now.Goroutines, before.Descriptors, before.Goroutines)
	}
	return err
}

func ownerStoppedReached(ctx context.Context, s *segmentStage) error {
	c, err := s.carrier(between{})
	if err != nil {
		return err
	}
	if err := s.well(ctx, c); err != nil {
		return err
	}
	if err := s.child.halt(); err != nil {
		return err
	}
	return s.well(ctx, c)
}

func ownerStoppedBefore(ctx context.Context, s *segmentStage) error {
	if err := s.child.halt(); err != nil {
		return err
	}
	c, err := s.carrier(between{})
	if err != nil {
		return err
	}
	if err := s.failed(s.traffic(ctx, c), overdue...); err != nil {
		return err
	}
	if err := s.child.resume(); err != nil {
		return err
	}
	// What lay in the buffers of its connections is taken now.
	if _, err := s.child.ask(childOrder{Do: "holds"}); err != nil {
		return err
	}
	if s.protocol == segment.ProtocolTCP {
		if err := s.drained(); err != nil {
			return err
		}
	}
	if err := s.ground.verify(); err != nil {
		return err
	}
	return s.well(ctx, c)
}

// drained waits until the memory has not changed for a while.
func (s *segmentStage) drained() error {
	last, err := s.ground.read()
	for since := time.Now(); err == nil && time.Since(since) < 100*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		var now []byte
		if now, err = s.ground.read(); !bytes.Equal(now, last) {
			last, since = now, time.Now()
		}
	}
	return err
}

// memoryTakenBack: when the owner has its memory back nobody writes to it any more.
func memoryTakenBack(ctx context.Context, s *segmentStage) error {
	c, err := s.carrier(between{})
	if s.protocol == segment.ProtocolTCP { // so slow that something is on its way when it happens
		c, err = s.relayed(ctx, func() plan { return plan{up: -1, down: -1, slow: true} })
	}
	if err != nil {
		return err
	}
	w := s.unhurried(ctx, c)
	if err := s.underway(w); err != nil {
		return err
	}
	time.Sleep(time.Duration(s.rand.IntN(300)) * time.Millisecond)
	if _, err := s.child.ask(childOrder{Do: "take back"}); err != nil {
		return err
	}
	mine, err := s.ground.read()
	if err != nil {
		return err
	}
	if err := s.failed(w, append(rejected, append(gone, refused)...)...); err != nil {
		return err
	}
	if err := s.ground.verify(); err != nil {
		return err
	}
	now, err := s.ground.read()
	if err == nil && !bytes.Equal(now, mine) {
		err = errors.New("the memory was written to after the owner had it back")
	}
	return err
}

func ownerLeaves(ctx context.Context, s *segmentStage) error {
	c, err := s.carrier(between{})
	if err != nil {
		return err
	}
	w := s.traffic(ctx, c)
	if err := s.underway(w); err != nil {
		return err
	}
	if _, err := s.child.ask(childOrder{Do: "close"}); err != nil {
		return err
	}
	if err := s.failed(w, append(rejected, append(gone, refused)...)...); err != nil {
		return err
	}
	return s.ground.verify()
}

func newOwner(ctx context.Context, s *segmentStage) error {
	c, err := s.carrier(between{})
	if err != nil {
		return err
	}
	if err := s.well(ctx, c); err != nil {
		return err
	}
	old := *s.ground
	if err := s.replaced(ctx); err != nil {
		return err
	}
	if err := s.refuses(ctx, c, &old, append(rejected, gone...), old.address, old.address+groundBytes-4096); err != nil {
		return err
	}
	return s.well(ctx, c)
}

// replaced kills the owner and has another process take its name.
func (s *segmentStage) replaced(ctx context.Context) error {
	name := s.ground.owner
	s.child.kill()
	return s.lend(ctx, name)
}

func oldDescriptor(ctx context.Context, s *segmentStage) error {
	var published segment.Descriptor
	c, err := s.carrier(between{change: func(d *segment.Descriptor) {
		if published.Name == "" {
			published = *d
		}
		*d = published
	}})
	if err != nil {
		return err
	}
	if err := s.well(ctx, c); err != nil {
		return err
	}
	old := *s.ground
	if err := s.replaced(ctx); err != nil {
		return err
	}
	if err := s.refuses(ctx, c, &old, append(rejected, append(gone, refused)...), old.address, old.address+groundBytes-4096); err != nil {
		return err
	}
	fresh, err := s.carrier(between{})
	if err != nil {
		return err
	}
	return s.well(ctx, fresh)
}

// refuses tries addresses of an owner, each of which must be refused, and sees that nothing has come of it.
func (s *segmentStage) refuses(ctx context.Context, c *segment.Carrier, g *ground, causes []any, addresses ...uint64) error {
	for _, at := range addresses {
		for _, write := range []bool{true, false} {
			b := bytes.Repeat([]byte{poison}, 1+s.rand.IntN(64<<10))
			limited, cancel := context.WithTimeout(ctx, s.deadline)
			began, verb := time.Now(), "reading"
			var err error
			if write {
				verb = "writing"
				err = c.Write(limited, segment.Place{Owner: g.owner, Address: at}, b)
			} else {
				err = c.Read(limited, segment.Place{Owner: g.owner, Address: at}, b)
			}
			cancel()
			what := fmt.Sprintf("%s %d bytes at %#x", verb, len(b), at)
			if err == nil {
				return fmt.Errorf("%s has succeeded", what)
			}
			if err := s.noted(setback{what, err, began, time.Since(began)}, causes); err != nil {
				return err
			}
			if !intact(b) {
				return fmt.Errorf("%s has failed, and has brought bytes", what)
			}
		}
	}
	return s.ground.verify()
}

func outOfRange(ctx context.Context, s *segmentStage) error {
	at, end := s.ground.address, s.ground.address+groundBytes
	honest, err := s.carrier(between{})
	if err != nil {
		return err
	}
	// More than it has, before and behind.
	const more = 1 << 30
	liar, err := s.carrier(between{change: func(d *segment.Descriptor) {
		for i := range d.Buffers {
			d.Buffers[i].Addr -= more
			d.Buffers[i].Length += 2 * more
		}
	}})
	if err != nil {
		return err
	}
	if err := s.well(ctx, liar); err != nil {
		return err
	}
	outside := []uint64{end, end + 4096, end + more - 64<<10, at - 64<<10, at - more}
	if err := s.refuses(ctx, honest, s.ground, rejected, append(outside, 0, 1, ^uint64(0), ^uint64(0)-64<<10)...); err != nil {
		return err
	}
	s.rand.Shuffle(len(outside), func(i, k int) { outside[i], outside[k] = outside[k], outside[i] })
	for _, a := range outside[:2] {
		if err := s.refuses(ctx, liar, s.ground, append(rejected, refused), a); err != nil {
			return err
		}
	}
	return s.well(ctx, honest)
}

// userGone: memory of this process, which another process uses until it is killed or stopped. Others notice
// nothing.
func userGone(ctx context.Context, s *segmentStage, killed bool) (err error) {
	if s.adapter, err = openAdapter(s.protocol); err != nil {
		return err
	}
	host, err := segment.NewHost(ctx, hostConfig(fmt.Sprintf("127.0.0.1:%d", 10000+s.rand.IntN(10000)), s.metadata, s.version, s.adapter))
	if err != nil {
		return err
	}
	memory, err := segment.NewMemory(groundBytes + stripeBytes) // the end is for the other process
	if err != nil {
		return errors.Join(err, host.Close(ctx))
	}
	defer func() {
		began := time.Now()
		err = errors.Join(err, host.Close(ctx))
		if took := time.Since(began); err == nil && took > 6*time.Second {
			err = fmt.Errorf("closing the host took %v", took)
		}
		err = errors.Join(err, memory.Free())
	}()
	if err := host.Register(ctx, memory); err != nil {
		return err
	}
	s.ground = &ground{owner: host.Name(), pid: os.Getpid(), address: memory.Address(), bytes: bytes.Clone(memory.Bytes()[:groundBytes])}
	mine, err := s.carrier(between{})
	if err != nil {
		return err
	}
	before, err := s.holding()
	if err != nil {
		return err
	}
	if err := s.child.tell(childOrder{Do: "use", Metadata: s.metadata, Name: host.Name(), Protocol: s.protocol, Version: s.version, Seed: s.rand.Uint64(), Address: memory.Address() + groundBytes, Size: stripeBytes}); err != nil {
		return err
	}
	theirs := &ground{pid: os.Getpid(), address: memory.Address() + groundBytes}
	used := func() bool {
		b, err := theirs.readSize(stripeBytes)
		return err != nil || !bytes.Equal(b, make([]byte, stripeBytes))
	}
	if !await(10*time.Second, used) {
		return errors.New("the other process writes nothing in 10 s")
	}
	if killed && s.rand.IntN(2) == 0 {
		// With nobody else there, everything that was made for the user has to go when the user is gone.
		s.child.kill()
		if now, ok := s.least(before); !ok {
			return fmt.Errorf("long after the only user was killed the host holds %s, %s before", now, before)
		}
		return s.well(ctx, mine)
	}
	w := s.unhurried(ctx, mine)
	if err := s.underway(w); err != nil {
		return err
	}
	if killed {
		s.child.kill()
	} else if err := s.child.halt(); err != nil {
		return err
	}
	time.Sleep(time.Duration(s.rand.IntN(20)) * time.Millisecond)
	if err := s.ends(w); err != nil {
		return err
	}
	if err := s.ground.verify(); err != nil {
		return err
	}
	return s.well(ctx, mine)
}

func idlers(ctx context.Context, s *segmentStage) error {
	m, err := segment.OpenMetadata(s.metadata, "", time.Now)
	if err != nil {
		return err
	}
	defer m.Close()
	targets := make([]string, 0, 2)
	if a, err := m.Address(ctx, s.ground.owner); err != nil {
		return err
	} else {
		targets = append(targets, a)
	}
	if s.protocol == segment.ProtocolTCP {
		d, err := m.Descriptor(ctx, s.ground.owner)
		if err != nil {
			return err
		}
		targets = append(targets, net.JoinHostPort("127.0.0.1", strconv.Itoa(d.DataPort)))
	}
	for i := range 100 {
		conn, err := net.Dial("tcp", targets[i%len(targets)])
		if err != nil {
			return err
		}
		defer conn.Close()
		conn.Write(make([]byte, s.rand.IntN(8))) // less than a message
	}
	c, err := s.carrier(between{})
	if err != nil {
		return err
	}
	return s.well(ctx, c)
}

// relayed makes a carrier that reaches the owner's data port through a relay.
func (s *segmentStage) relayed(ctx context.Context, next func() plan) (*segment.Carrier, error) {
	m, err := segment.OpenMetadata(s.metadata, "", time.Now)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	d, err := m.Descriptor(ctx, s.ground.owner)
	if err != nil {
		return nil, err
	}
	r, err := s.relay(net.JoinHostPort(d.DataHost, strconv.Itoa(d.DataPort)), next)
	if err != nil {
		return nil, err
	}
	return s.carrier(between{change: func(d *segment.Descriptor) { d.DataHost, d.DataPort, d.DataVersion = "127.0.0.1", r.port(), s.version }})
}

// connectionEnds: connections end after some bytes in either direction; often within a header or a status, and always
// before the longest transfers are through.
func connectionEnds(ctx context.Context, s *segmentStage, how ending, causes []any) error {
	most := [...]int64{1, 8, 24, 48, 64 << 10, stripeBytes / 2}[s.rand.IntN(6)]
	up, limit := s.rand.IntN(2) == 0, s.rand.Int64N(most)
	c, err := s.relayed(ctx, func() plan {
		if up {
			return plan{up: limit, down: -1, how: how}
		}
		return plan{up: -1, down: limit, how: how}
	})
	if err != nil {
		return err
	}
	if err := s.failed(s.traffic(ctx, c), causes...); err != nil {
		return fmt.Errorf("%v after %d bytes (to the owner: %v): %w", how, limit, up, err)
	}
	if err := s.drained(); err != nil {
		return err
	}
	if err := s.ground.verify(); err != nil {
		return err
	}
	direct, err := s.carrier(between{})
	if err != nil {
		return err
	}
	return s.well(ctx, direct)
}

func answersGarbled(ctx context.Context, s *segmentStage) error {
	s.version = 2 // the other one has no answers that could be checked
	c, err := s.relayed(ctx, func() plan { return plan{up: -1, how: garbled} })
	if err != nil {
		return err
	}
	if err := s.failed(s.traffic(ctx, c), `status`); err != nil {
		return err
	}
	if err := s.drained(); err != nil {
		return err
	}
	return s.ground.verify()
}

// handshakeEnds: the messages of the handshake port don't come through. Over TCP with a store nobody needs it.
func handshakeEnds(ctx context.Context, s *segmentStage, how ending) error {
	m, err := segment.OpenMetadata(s.metadata, "", time.Now)
	if err != nil {
		return err
	}
	defer m.Close()
	address, err := m.Address(ctx, s.ground.owner)
	if err != nil {
		return err
	}
	p := plan{up: s.rand.Int64N(8), down: -1, how: how}
	if how == garbled || s.rand.IntN(2) == 0 {
		p = plan{up: -1, down: s.rand.Int64N(24), how: how}
	}
	r, err := s.relay(address, func() plan { return p })
	if err != nil {
		return err
	}
	c, err := s.carrier(between{handshake: r.address()})
	if err != nil {
		return err
	}
	if s.protocol == segment.ProtocolTCP && s.metadata != segment.P2P {
		return s.well(ctx, c)
	}
	if err := s.failed(s.traffic(ctx, c), append(append(gone, overdue...), "handshake|descriptor")...); err != nil {
		return fmt.Errorf("%v: %w", p, err)
	}
	if err := s.ground.verify(); err != nil {
		return err
	}
	direct, err := s.carrier(between{})
	if err != nil {
		return err
	}
	return s.well(ctx, direct)
}

// unplug takes a device's port down in all processes, plug brings it back.
func unplug(device int) error {
	down := filepath.Join(os.Getenv("SOFTVERBS_DIR"), "down")
	return errors.Join(os.MkdirAll(down, 0o777), os.WriteFile(filepath.Join(down, fmt.Sprint("softrdma", device)), nil, 0o666))
}

func plug(device int) error {
	err := os.Remove(filepath.Join(os.Getenv("SOFTVERBS_DIR"), "down", fmt.Sprint("softrdma", device)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func portDown(ctx context.Context, s *segmentStage) error {
	defer plug(0)
	defer plug(1)
	c, err := s.carrier(between{})
	if err != nil {
		return err
	}
	w := s.unhurried(ctx, c)
	if err := s.underway(w); err != nil {
		return err
	}
	device := s.rand.IntN(2)
	if err := unplug(device); err != nil {
		return err
	}
	time.Sleep(time.Duration(100+s.rand.IntN(200)) * time.Millisecond)
	if err := s.underway(w); err != nil {
		return err
	}
	if err := s.ends(w); err != nil {
		return err
	}
	if err := s.ground.verify(); err != nil {
		return err
	}
	if err := plug(device); err != nil {
		return err
	}
	return s.well(ctx, c)
}

func portsDown(ctx context.Context, s *segmentStage) error {
	defer plug(0)
	defer plug(1)
	c, err := s.carrier(between{})
	if err != nil {
		return err
	}
	w := s.traffic(ctx, c)
	if err := s.underway(w); err != nil {
		return err
	}
	if err := errors.Join(unplug(0), unplug(1)); err != nil {
		return err
	}
	if err := s.failed(w, append(gone, "port|no RDMA device here is active|lent no memory there by RDMA", context.DeadlineExceeded)...); err != nil {
		return err
	}
	if err := s.ground.verify(); err != nil {
		return err
	}
	if err := errors.Join(plug(0), plug(1)); err != nil {
		return err
	}
	if !await(10*time.Second, func() bool {
		limited, cancel := context.WithTimeout(ctx, s.deadline)
		defer cancel()
		return c.Read(limited, segment.Place{Owner: s.ground.owner, Address: s.ground.address}, make([]byte, 1)) == nil
	}) {
		return errors.New("nothing is reached 10 s after the ports are back")
	}
	return s.well(ctx, c)
}

func wrongKeys(ctx context.Context, s *segmentStage) error {
	swap := s.rand.IntN(2) == 0
	c, err := s.carrier(between{change: func(d *segment.Descriptor) {
		for i := range d.Buffers {
			keys := d.Buffers[i].RKey
			if swap && len(keys) > 1 {
				keys[0], keys[1] = keys[1], keys[0]
				continue
			}
			for k := range keys {
				keys[k] ^= 0x5A00
			}
		}
	}})
	if err != nil {
		return err
	}
	if err := s.refuses(ctx, c, s.ground, append(rejected, refused), s.ground.address, s.ground.address+groundBytes-64<<10); err != nil {
		return err
	}
	honest, err := s.carrier(between{})
	if err != nil {
		return err
	}
	return s.well(ctx, honest)
}

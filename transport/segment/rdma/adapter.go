package rdma

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

// Device is what is published about a device.
type Device struct {
	Name string
	LID  uint16
	GID  string
}

// ErrClosed is returned by an adapter that is closed.
var ErrClosed = errors.New("the RDMA adapter is closed")

// Adapter holds the RDMA devices of a process. It is safe for concurrent use.
type Adapter struct {
	o      Options
	matrix matrix // of all its devices
	nics   []*nic
	turn   atomic.Uint32 // deals transfers to equal ways

	base   context.Context // ends when the adapter is closed
	cancel context.CancelFunc

	mu      sync.Mutex
	name    string
	service *Service
	closed  bool
	tasks   int // goroutines that come and go
	idle    sync.Cond
	loops   sync.WaitGroup // goroutines that stay until the end

	regions regions
	bounce  bounce
	buffers buffers
}

// Service is what an adapter needs of a host that it serves.
type Service struct {
	// Name is what others call the host.
	Name string
	// Changed is called when other devices are to be published, from a goroutine of the adapter; nil = nobody.
	Changed func()
	// Devices finds what an owner has published about its devices, for those who don't say their address; nil =
	// they must say it.
	Devices func(ctx context.Context, owner string) ([]Device, error)
}

// Open opens the devices that options name. It fails with verbs.ErrNotBuilt in a program without RDMA.
func Open(o Options) (*Adapter, error) {
	if o.Now == nil {
		return nil, errors.New("RDMA: nothing tells the time")
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	there, err := verbs.Names()
	if err != nil {
		return nil, err
	}
	names := o.Devices
	if len(names) == 0 {
		names = there
	}
	if len(names) == 0 {
		return nil, errors.New("RDMA: this machine has no device")
	}
	if o.Name == "" {
		host, _ := os.Hostname()
		o.Name = fmt.Sprintf("%s:%d-%s", host, os.Getpid(), rand.Text()[:10])
	}
	a := &Adapter{o: o, name: o.Name}
	a.idle.L = &a.mu
	a.base, a.cancel = context.WithCancel(context.Background())
	a.bounce.init(a)
	a.buffers.a, a.buffers.free = a, make(map[int][]*own)
	if err := a.open(names); err != nil {
		for _, n := range a.nics {
			n.dev.Shutdown()
			n.dev.Close()
		}
		a.cancel()
		return nil, err
	}
	for _, n := range a.nics {
		a.loops.Add(2)
		go n.reap()
		go n.listen()
	}
	a.loops.Add(1)
	go a.keep()
	return a, nil
}

func (a *Adapter) open(names []string) error {
	var why error // the last device was not taken
	for _, name := range names {
		if slices.ContainsFunc(a.nics, func(n *nic) bool { return n.name == name }) {
			return fmt.Errorf("RDMA: device %s is named twice", name)
		}
		n, err := a.openNIC(name)
		if err != nil && len(a.o.Devices) > 0 {
			return err
		}
		if err != nil {
			a.o.Log.Warn("RDMA device is left alone", "device", name, "error", err)
			why = err
			continue
		}
		a.nics = append(a.nics, n)
	}
	if !slices.ContainsFunc(a.nics, func(n *nic) bool { return n.active }) {
		if why == nil {
			why = fmt.Errorf("no port %d is active", a.o.Port)
		}
		return fmt.Errorf("RDMA: none of the devices %q can be used: %w", names, why)
	}
	a.matrix = matrix(a.o.Matrix).only(func(name string) bool { return a.nic(name) != nil })
	if a.o.Matrix == nil {
		var opened []string
		for _, n := range a.nics {
			opened = append(opened, n.name)
		}
		a.matrix = arrange(nodes(a.o.Sysfs), opened, func(d string) int { return nodeOf(a.o.Sysfs, d) })
	}
	for _, name := range names {
		if a.nic(name) != nil && !slices.Contains(a.matrix.order(), name) {
			return fmt.Errorf("RDMA: the matrix of places and devices leaves out device %s", name)
		}
	}
	return nil
}

// nic returns the device of a name, or nil.
func (a *Adapter) nic(name string) *nic {
	for _, n := range a.nics {
		if n.name == name {
			return n
		}
	}
	return nil
}

// Name returns what this process is called.
func (a *Adapter) Name() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.name
}

// Serve takes another name, under which connections are accepted, until stop is called. Connections made under the
// old name end. One host can be served at a time.
func (a *Adapter) Serve(s Service) (stop func(), err error) {
	a.mu.Lock()
	switch {
	case a.closed:
		err = ErrClosed
	case a.service != nil:
		err = fmt.Errorf("this RDMA adapter serves %s already, one host can be served at a time", a.service.Name)
	default:
		a.service, a.name = &s, s.Name
	}
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	a.hangUp(errRenamed)
	return func() {
		a.mu.Lock()
		a.service, a.name = nil, a.o.Name
		a.mu.Unlock()
		a.hangUp(errRenamed)
	}, nil
}

// hangUp ends all endpoints.
func (a *Adapter) hangUp(why error) {
	for _, n := range a.nics {
		n.dropAll(why)
	}
}

// begin notes a goroutine that Close waits for, end its end. begin fails when the adapter is closed.
func (a *Adapter) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.tasks++
	return true
}

// also is begin for what is begun by something that Close waits for, or by Close.
func (a *Adapter) also() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tasks++
}

func (a *Adapter) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tasks--; a.tasks == 0 {
		a.idle.Broadcast()
	}
}

// Close ends all transfers, which fail, withdraws all regions and closes the devices.
func (a *Adapter) Close() error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	a.hangUp(ErrClosed)
	a.mu.Lock()
	for a.tasks > 0 {
		a.idle.Wait()
	}
	a.mu.Unlock()
	for _, n := range a.nics {
		n.dev.Shutdown()
	}
	a.loops.Wait()
	err := errors.Join(a.buffers.close(), a.bounce.close(), a.regions.closeAll())
	for _, n := range a.nics {
		err = errors.Join(err, n.dev.Close())
	}
	return err
}

// Status tells what an adapter holds, for metrics and tests.
type Status struct {
	Device               string
	Active               bool
	Endpoints, Breaking  int // usable or being made, and being taken down
	QueuePairs, InFlight int
}

// Status returns the state of each device.
func (a *Adapter) Status() []Status {
	var all []Status
	for _, n := range a.nics {
		n.mu.Lock()
		s := Status{Device: n.name, Active: n.active, Endpoints: len(n.endpoints), Breaking: n.breaking, QueuePairs: n.queuePairs}
		s.InFlight = len(n.flights) - len(n.free)
		n.mu.Unlock()
		all = append(all, s)
	}
	return all
}

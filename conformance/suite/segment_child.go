package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// segmentChild is the argument that makes this program a process which lends memory, or uses that of others,
// until its input ends.
const segmentChild = "segment-child"

// childOrder is what it is told to do, childAnswer what it says about it.
type childOrder struct {
	Do       string // "lend", "take back", "close", "use", "holds"
	Metadata string
	Name     string // of a host to be; or of the owner whose memory is used
	Protocol string
	Version  int
	Seed     uint64
	// The memory to use, of an owner called Name.
	Address, Size uint64
}

type childAnswer struct {
	Error       string
	Name        string
	Address     uint64
	Goroutines  int
	Descriptors int
}

// runChild is the child's main.
func runChild() {
	c := &lending{}
	answers := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var o childOrder
		var a childAnswer
		err := json.Unmarshal(lines.Bytes(), &o)
		if err == nil {
			a, err = c.obey(context.Background(), &o)
		}
		if err != nil {
			a.Error = err.Error()
		}
		answers.Encode(a)
	}
	os.Exit(0)
}

// lending is what a child lends.
type lending struct {
	adapter *rdma.Adapter
	host    *segment.Host
	memory  *segment.Memory
}

func (c *lending) obey(ctx context.Context, o *childOrder) (a childAnswer, err error) {
	switch o.Do {
	case "lend":
		if c.adapter, err = openAdapter(o.Protocol); err != nil {
			return a, err
		}
		if c.host, err = segment.NewHost(ctx, hostConfig(o.Name, o.Metadata, o.Version, c.adapter)); err != nil {
			return a, err
		}
		if c.memory, err = segment.NewMemory(groundBytes); err != nil {
			return a, err
		}
		copy(c.memory.Bytes(), fill(o.Seed))
		a.Name, a.Address = c.host.Name(), c.memory.Address()
		return a, c.host.Register(ctx, c.memory)
	case "take back":
		return a, c.host.Unregister(ctx, c.memory)
	case "close":
		return a, c.host.Close(ctx)
	case "use":
		return a, c.use(ctx, o)
	case "holds":
		a.Goroutines, a.Descriptors = runtime.NumGoroutine(), descriptors(os.Getpid())
		return a, nil
	}
	return a, fmt.Errorf("%q is no order", o.Do)
}

// use writes to and reads from memory until that fails; it is a child's last order, as a rule.
func (c *lending) use(ctx context.Context, o *childOrder) (err error) {
	if c.adapter, err = openAdapter(o.Protocol); err != nil {
		return err
	}
	metadata, err := segment.OpenMetadata(o.Metadata, "", time.Now)
	if err != nil {
		return err
	}
	carrier := segment.NewCarrier(segment.CarrierConfig{Metadata: metadata, RDMA: c.adapter, DataVersion: o.Version, Now: time.Now})
	failed := make(chan error)
	for n := range uint64(stripes) {
		go func() {
			r, size := rand.New(rand.NewPCG(o.Seed, n)), o.Size/stripes
			data := make([]byte, size)
			for {
				rand.NewChaCha8([32]byte{byte(r.Uint32())}).Read(data)
				k := 1 + r.Uint64N(size)
				at := segment.Place{Owner: o.Name, Address: o.Address + n*size + r.Uint64N(size-k+1)}
				err := carrier.Write(ctx, at, data[:k])
				if err == nil {
					err = carrier.Read(ctx, at, data[:k])
				}
				if err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

func hostConfig(name, metadata string, version int, adapter *rdma.Adapter) segment.HostConfig {
	return segment.HostConfig{Name: name, Metadata: metadata, Bind: "127.0.0.1", DataVersion: version, RDMA: adapter, Now: time.Now}
}

// openAdapter opens all RDMA devices, if that is the protocol. What takes long by default takes less here.
func openAdapter(protocol string) (*rdma.Adapter, error) {
	if protocol != segment.ProtocolRDMA {
		return nil, nil
	}
	o := rdma.Options{Sysfs: os.Getenv("SOFTVERBS_DIR") + "/sys", RailPause: 500 * time.Millisecond, Probe: time.Second, Now: time.Now}
	if err := o.Environment(os.Getenv); err != nil {
		return nil, err
	}
	return rdma.Open(o)
}

// child is such a process, seen from its parent.
type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	stopped bool
	gone    sync.Once
}

// newChild starts one.
func newChild(ctx context.Context) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self, segmentChild)}
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.answers = json.NewDecoder(out)
	return c, c.cmd.Start()
}

// tell gives an order; hear waits for its answer.
func (c *child) tell(o childOrder) error { return json.NewEncoder(c.in).Encode(o) }

func (c *child) hear() (childAnswer, error) {
	var a childAnswer
	err := c.answers.Decode(&a)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

func (c *child) ask(o childOrder) (childAnswer, error) {
	if err := c.tell(o); err != nil {
		return childAnswer{}, fmt.Errorf("order %q: %w", o.Do, err)
	}
	a, err := c.hear()
	if err != nil {
		err = fmt.Errorf("order %q: %w", o.Do, err)
	}
	return a, err
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// halt stops the process as a debugger would, resume lets it go on.
func (c *child) halt() error   { c.stopped = true; return c.cmd.Process.Signal(syscall.SIGSTOP) }
func (c *child) resume() error { c.stopped = false; return c.cmd.Process.Signal(syscall.SIGCONT) }

// kill ends it with -9 and waits.
func (c *child) kill() {
	c.gone.Do(func() {
		c.cmd.Process.Kill() // it may be gone already
		c.in.Close()
		c.cmd.Wait()
	})
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// lending is how memory is lent, and found.
type lending struct {
	name, bind, advertise string
	metadata, cluster     string
	protocol              string
	devices, sysfs        string // of RDMA
	size                  uint64
}

// define declares the flags on f.
func (l *lending) define(f *flag.FlagSet) {
	*l = lending{metadata: segment.P2P, protocol: segment.ProtocolTCP}
	f.StringVar(&l.metadata, "metadata", l.metadata, "`address` of the metadata store: P2PHANDSHAKE for none, http://HOST:PORT/metadata, etcd://HOST:PORT")
	f.StringVar(&l.cluster, "metadata_cluster", "", "`name` that sets the keys of one cluster apart in the store (MC_METADATA_CLUSTER_ID)")
	f.StringVar(&l.protocol, "protocol", l.protocol, "tcp or rdma")
	f.StringVar(&l.devices, "devices", "", "`list` of adapters for RDMA; default: all whose port is active")
	f.StringVar(&l.sysfs, "sysfs", "", "`folder` in which the system describes its adapters; default: /sys")
	f.StringVar(&l.name, "name", "", "`HOST:PORT` that the lent memory is known by; HOST is where others reach this machine, PORT part of the name only; default where a process is started here: 127.0.0.1:17900")
	f.StringVar(&l.bind, "bind", "", "`address` to listen on; default: all")
	f.StringVar(&l.advertise, "advertise", "", "`host` that others are told; default: that of --name")
	sizeVar(f, &l.size, "size", "of the memory that is lent, with an optional unit; default: what the transfers need, for serve 1GiB")
}

// check says what is wrong with the values; lends, whether memory is lent here at all.
func (l *lending) check(lends bool) error {
	if l.protocol != segment.ProtocolTCP && l.protocol != segment.ProtocolRDMA {
		return wrong("protocol", "%q, want tcp or rdma", l.protocol)
	}
	if l.protocol != segment.ProtocolRDMA && (l.devices != "" || l.sysfs != "") {
		return usageError{"--devices and --sysfs are for --protocol rdma"}
	}
	m, err := segment.OpenMetadata(l.metadata, l.cluster, time.Now)
	if err != nil {
		return wrong("metadata", "%v", err)
	}
	if err := m.Close(); err != nil {
		return wrong("metadata", "%v", err)
	}
	if !lends {
		if l.name != "" || l.size != 0 || l.bind != "" || l.advertise != "" {
			return usageError{"--name, --bind, --advertise and --size are for memory that is lent here, and --target says that it is lent elsewhere"}
		}
		return nil
	}
	if l.name == "" {
		l.name = "127.0.0.1:17900"
	}
	if host, _, err := net.SplitHostPort(l.name); err != nil || host == "" {
		return wrong("name", "%q, want HOST:PORT", l.name)
	}
	return nil
}

// Memory that serve lends begins with servedMark, by which others know that they may write to it, behind the
// first servedHead bytes.
const (
	servedMark = "mooncake_bench segment serve: this memory may be written to\n"
	servedHead = 4096
)

// served is what serve says of itself.
type served struct {
	Kind     string `json:"kind"` // "served"
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Metadata string `json:"metadata"`
	Address  uint64 `json:"address"`
	Size     uint64 `json:"size"`
	Pid      int    `json:"pid"`
}

// segmentServe lends memory until it is told to stop.
func segmentServe(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("segment serve", flag.ContinueOnError)
	var l lending
	l.define(f)
	path := f.String("json", "", "`file` for a line of JSON that says what is served; - is standard output")
	if err := parse(f, args, stdout); err != nil {
		return err
	}
	if l.size == 0 {
		l.size = 1 << 30
	}
	if err := errors.Join(noArguments(f), l.check(true)); err != nil {
		return err
	}
	if l.size <= servedHead {
		return wrong("size", "%d bytes are too few, %d are needed to say what the memory is for", l.size, servedHead)
	}
	out, err := openOutput(*path, stdout, stderr)
	if err != nil {
		return err
	}
	defer out.close()
	return l.lend(ctx, func(s *served) error {
		if err := out.line(s); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out.table, "%s lends %s over %s; measure with\n\n  mooncake_bench segment --target %s%s\n\n", s.Name, formatSize(s.Size), s.Protocol, s.Name, l.flags())
		return err
	})
}

// flags are the flags that find what is lent, as far as they are not the defaults.
func (l *lending) flags() string {
	var b strings.Builder
	for _, f := range []struct{ name, value, usual string }{
		{"metadata", l.metadata, segment.P2P}, {"metadata_cluster", l.cluster, ""}, {"protocol", l.protocol, segment.ProtocolTCP},
	} {
		if f.value != f.usual {
			fmt.Fprintf(&b, " --%s %s", f.name, f.value)
		}
	}
	return b.String()
}

// lend lends memory until ctx ends. ready is called when it can be reached.
func (l *lending) lend(ctx context.Context, ready func(*served) error) (err error) {
	memory, err := segment.NewMemory(int(l.size))
	if err != nil {
		return wrong("size", "%v", err)
	}
	defer func() { err = errors.Join(err, memory.Free()) }()
	// Every page is there before it is measured.
	for i := 0; i < len(memory.Bytes()); i += servedHead {
		memory.Bytes()[i] = 1
	}
	copy(memory.Bytes(), servedMark)
	adapter, err := l.adapter()
	if err != nil {
		return err
	}
	defer closeAdapter(adapter, &err)
	host, err := segment.NewHost(ctx, segment.HostConfig{
		Name: l.name, Metadata: l.metadata, Cluster: l.cluster, Bind: l.bind, Advertise: l.advertise, RDMA: adapter, Now: time.Now,
	})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, host.Close(closing))
	}()
	if err := host.Register(ctx, memory); err != nil {
		return err
	}
	if err := ready(&served{
		Kind: "served", Name: host.Name(), Protocol: l.protocol, Metadata: l.metadata, Address: memory.Address(), Size: l.size, Pid: os.Getpid(),
	}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// adapter opens the adapters for RDMA, nil for TCP. What the released clients read from the environment counts
// here, too.
func (l *lending) adapter() (*rdma.Adapter, error) {
	if l.protocol != segment.ProtocolRDMA {
		return nil, nil
	}
	o := rdma.Options{Sysfs: l.sysfs, Now: time.Now}
	if l.devices != "" {
		o.Devices = strings.Split(l.devices, ",")
	}
	if err := o.Environment(os.Getenv); err != nil {
		return nil, err
	}
	a, err := rdma.Open(o)
	if err != nil {
		return nil, fmt.Errorf("--protocol rdma: %w", err)
	}
	return a, nil
}

// closeAdapter closes an adapter, if it is one, and adds what went wrong.
func closeAdapter(a *rdma.Adapter, err *error) {
	if a != nil {
		*err = errors.Join(*err, a.Close())
	}
}

// start starts a process that lends memory.
func (l *lending) start(ctx context.Context) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{
		"segment", "serve", "--json", "-", "--name", l.name, "--metadata", l.metadata, "--metadata_cluster", l.cluster, "--protocol", l.protocol,
		"--devices", l.devices, "--sysfs", l.sysfs, "--bind", l.bind, "--advertise", l.advertise, "--size", fmt.Sprint(l.size),
	}
	var said bytes.Buffer
	c := &child{cmd: exec.Command(self, args...), exited: make(chan error, 1)}
	c.cmd.Stderr = &said
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := startPinned(c.cmd, -1); err != nil {
		return nil, fmt.Errorf("starting %s: %w", self, err)
	}
	first := make(chan []byte, 1)
	go func() {
		r := bufio.NewReader(stdout)
		line, _ := r.ReadBytes('\n')
		first <- line
		_, _ = io.Copy(io.Discard, r) // it ends with the process, whose status says the rest
		c.exited <- c.cmd.Wait()
	}()
	var s served
	select {
	case line := <-first:
		if err = json.Unmarshal(line, &s); err == nil && s.Kind == "served" {
			c.name = s.Name
			return c, nil
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(startTimeout):
		err = fmt.Errorf("it lends nothing within %v", startTimeout)
	}
	_ = c.cmd.Process.Kill() // if it has not ended already
	<-c.exited
	if text := strings.TrimSpace(said.String()); text != "" {
		return nil, errors.New(strings.TrimPrefix(text, "mooncake_bench segment: "))
	}
	return nil, fmt.Errorf("the process that lends memory: %w", err)
}

// stop ends the process. One that ended by itself is an error.
func (c *child) stop() error {
	select {
	case exit := <-c.exited:
		return fmt.Errorf("the process that lends memory has ended by itself: %w", cmpErr(exit, errors.New("exit status 0")))
	default:
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-c.exited:
		return err
	case <-time.After(stopTimeout):
		_ = c.cmd.Process.Kill()
		<-c.exited
		return fmt.Errorf("the process that lends memory did not end within %v", stopTimeout)
	}
}

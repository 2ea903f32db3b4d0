package rdma

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"
)

// Options say which devices are used and how. Zero values are good ones, but for Now.
type Options struct {
	// Name is what this process is called until it serves under another name; it must differ from that of
	// every other process. "" = one is made up.
	Name string
	// Devices are the names of the devices to use; none = all whose port is active.
	Devices []string
	// Sysfs is where the kernel shows devices. "" = /sys.
	Sysfs string
	// Matrix says which devices to use for which place of memory, first the preferred and then the other
	// ones, instead of what the machine looks like. nil = as it looks.
	Matrix map[string][][]string

	Port         int  // of each device; 0 = 1
	GIDIndex     *int // of the port's table; nil = the best
	MTU          int  // most bytes of a packet; 0 = 4096
	TrafficClass int
	ServiceLevel int

	QueuePairs  int // of each endpoint, as many as the other side has; 0 = 2
	QueueDepth  int // requests under way on one queue pair; 0 = 256
	Completions int // entries of a device's completion queue; 0 = 4096
	Endpoints   int // most endpoints of a device; 0 = 4096
	SliceSize   int // bytes of one request; 0 = 1 MiB
	// Spin is how often a device is asked for completions before its thread sleeps until it is woken. 0 = it
	// sleeps at once, which costs a few microseconds and leaves the processor to others.
	Spin int

	Tries int // how often a slice is tried before its transfer fails; 0 = 9
	// RailPause is how long a way that has failed is not used while there is another, and how long a port must
	// be active again before it is used; 0 = 30 s.
	RailPause time.Duration
	// HandshakeTimeout bounds the making of an endpoint; 0 = 15 s.
	HandshakeTimeout time.Duration
	// Probe is how long an endpoint may lie idle before the other side is asked whether it is still there; 0 =
	// 60 s, negative = never.
	Probe time.Duration
	// BounceMemory is how much registered memory is kept for transfers from and to memory that isn't, in
	// bytes; 0 = 32 MiB.
	BounceMemory int

	// Now tells the time. Log is told about ports that go down and endpoints that break; nil = nobody.
	Now func() time.Time
	Log *slog.Logger
}

// The limits of what makes sense.
const (
	minSlice       = 4 << 10
	maxSlice       = 1 << 30
	maxQueuePairs  = 64
	defaultPause   = 30 * time.Second
	ackTimeout     = 10 * time.Second // for the acknowledgement of an endpoint that the other side has made
	drainTimeout   = 5 * time.Second  // for requests of a broken endpoint to come back
	defaultBounce  = 32 << 20
	defaultSlice   = 1 << 20
	defaultProbe   = time.Minute
	defaultTries   = 9
	defaultTimeout = 15 * time.Second
)

func (o *Options) complete() error {
	for _, d := range []struct {
		field *int
		name  string
		value int // for 0
		least int
		most  int
	}{
		{&o.Port, "port (MC_IB_PORT)", 1, 1, 255},
		{&o.MTU, "MTU (MC_MTU)", 4096, 256, 4096},
		{&o.TrafficClass, "traffic class (MC_IB_TC)", 0, 0, 255},
		{&o.ServiceLevel, "service level (MC_IB_SL)", 0, 0, 15},
		{&o.QueuePairs, "queue pairs of an endpoint (MC_NUM_QP_PER_EP)", 2, 1, maxQueuePairs},
		{&o.QueueDepth, "requests of a queue pair (MC_MAX_WR)", 256, 1, 1 << 15},
		{&o.Completions, "completions of a device (MC_MAX_CQE_PER_CTX)", 4096, 16, 1 << 22},
		{&o.Endpoints, "endpoints of a device (MC_MAX_EP_PER_CTX)", 4096, 1, 1 << 20},
		{&o.SliceSize, "slice size (MC_SLICE_SIZE)", defaultSlice, minSlice, maxSlice},
		{&o.Tries, "tries (MC_RETRY_CNT)", defaultTries, 1, 128},
		{&o.BounceMemory, "bounce memory", defaultBounce, 1 << 20, 1 << 40},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
		if *d.field < d.least || *d.field > d.most {
			return fmt.Errorf("RDMA: %s is %d, it must be from %d to %d", d.name, *d.field, d.least, d.most)
		}
	}
	if o.GIDIndex != nil && (*o.GIDIndex < 0 || *o.GIDIndex > 255) {
		return fmt.Errorf("RDMA: GID index (MC_GID_INDEX) is %d, it must be from 0 to 255", *o.GIDIndex)
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&o.RailPause, defaultPause}, {&o.HandshakeTimeout, defaultTimeout}, {&o.Probe, defaultProbe}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Sysfs == "" {
		o.Sysfs = "/sys"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Environment takes over what the released clients read from their environment. getenv is os.Getenv, as a rule.
func (o *Options) Environment(getenv func(string) string) error {
	number := func(name string, set func(int)) error {
		text := getenv(name)
		if text == "" {
			return nil
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%s=%q: it must be a number", name, text)
		}
		set(n)
		return nil
	}
	for name, set := range map[string]func(int){
		"MC_GID_INDEX":               func(n int) { o.GIDIndex = &n },
		"MC_IB_PORT":                 func(n int) { o.Port = n },
		"MC_IB_TC":                   func(n int) { o.TrafficClass = n },
		"MC_IB_SL":                   func(n int) { o.ServiceLevel = n },
		"MC_MTU":                     func(n int) { o.MTU = n },
		"MC_NUM_QP_PER_EP":           func(n int) { o.QueuePairs = n },
		"MC_MAX_WR":                  func(n int) { o.QueueDepth = n },
		"MC_MAX_CQE_PER_CTX":         func(n int) { o.Completions = n },
		"MC_MAX_EP_PER_CTX":          func(n int) { o.Endpoints = n },
		"MC_SLICE_SIZE":              func(n int) { o.SliceSize = n },
		"MC_RETRY_CNT":               func(n int) { o.Tries = n },
		"MC_RDMA_RAIL_PAUSE_SECONDS": func(n int) { o.RailPause = time.Duration(n) * time.Second },
	} {
		if err := number(name, set); err != nil {
			return err
		}
	}
	if name := getenv("MC_CUSTOM_TOPO_JSON"); name != "" {
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &o.Matrix)
		}
		if err != nil {
			return fmt.Errorf("MC_CUSTOM_TOPO_JSON: matrix of places and devices in %s: %w", name, err)
		}
	}
	return nil
}

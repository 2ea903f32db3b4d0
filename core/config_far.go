package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/mooncake-go/mooncake-master/core/transfer"
)

// TaskConfig bounds the queue of copies and moves that clients carry out.
type TaskConfig struct {
	MaxFinished, MaxPending, MaxProcessing int
	PendingTimeout                         time.Duration // since creation; 0 = never
	ProcessingTimeout                      time.Duration // since the last word of the client; 0 = never
	MaxRetries                             uint32        // told to the client that carries a task out
}

// Who carries out copies and moves that somebody has asked for by a task.
const (
	ExecutorAuto   = "auto"   // the client that the task is for; the master when that one doesn't fetch it
	ExecutorClient = "client" // the client, as in the original
	ExecutorMaster = "master" // the master, always
)

// TransferConfig is about the tasks that the master carries out itself, where it has a carrier.
type TransferConfig struct {
	Executor    string        // one of the above
	Takeover    time.Duration // with auto: how long a client that is alive has to fetch its task
	Memory      int           // bytes of buffers
	Concurrency int           // objects that are carried at the same moment
	Bandwidth   uint64        // bytes written per second, 0 = no limit
	Stall       time.Duration // how long a piece may take
	Timeout     time.Duration // how long an object may take, 0 = no limit
}

// pump is what the transfers need.
func (t *TransferConfig) pump() transfer.Config {
	return transfer.Config{Memory: t.Memory, Concurrency: t.Concurrency, Bandwidth: t.Bandwidth, Stall: t.Stall, Timeout: t.Timeout}
}

// OffloadConfig is about objects on clients' own disks.
type OffloadConfig struct {
	Enabled    bool
	OnEvict    bool    // write an object to disk when it is evicted, not when it is written
	ForceEvict bool    // with OnEvict: evict also what could not be offloaded
	QueueLimit int     // objects that may wait for one client
	CapRatio   float64 // with ForceEvict: the share of QueueLimit that one pass offloads, [0,1]
}

// PromotionConfig is about bringing objects from clients' disks back to memory when they are read.
type PromotionConfig struct {
	OnHit           bool
	Admission       int // how often an object has to be read; 1 to 255
	QueueLimit      int // promotions that may be under way
	MaxPerHeartbeat int // given to one client at a time
}

// The modes of dynamic replication.
const (
	ReplicationOff     = "off"
	ReplicationObserve = "observe" // only count
	ReplicationEnforce = "enforce" // copy objects that are read often
)

// DynamicReplicationConfig is about further copies of objects that are read often.
type DynamicReplicationConfig struct {
	Mode         string
	HeatWindow   time.Duration
	AdmissionQPS float64 // reads a second from which on an object is copied
	MaxReplicas  int     // in memory
}

// NoFConfig is about NVMe-oF segments.
type NoFConfig struct {
	Enabled           bool
	EvictionRatio     float64
	EvictionWatermark float64
	HeartbeatInterval time.Duration
	ProbeTimeout      time.Duration
	FailuresThreshold int
}

// CXLConfig is about memory that all segments of protocol "cxl" share.
type CXLConfig struct {
	Enabled bool   // and with it the placement strategy "cxl", and slabs: see slab
	Path    string // what the memory is called in figures
	Size    uint64 // bytes
}

// Where CXL is enabled, memory is divided as the released masters do then: segments begin and end at
// multiples of a slab, and an object fits into one.
const (
	slab         = 16 << 20
	largestInCXL = slab - 16
)

// DiskConfig is about replicas in a file system that all clients share.
type DiskConfig struct {
	Root      string // "" = none
	ClusterID string // a folder in it
}

func (c *Config) defaultFar() {
	c.Tasks = TaskConfig{
		MaxFinished: 10000, MaxPending: 10000, MaxProcessing: 10000,
		PendingTimeout: 300 * time.Second, ProcessingTimeout: 300 * time.Second, MaxRetries: 10,
	}
	c.Transfer = TransferConfig{
		Executor: ExecutorAuto, Takeover: 3 * time.Second, Memory: transfer.DefaultMemory, Concurrency: transfer.DefaultConcurrency,
		Stall: transfer.DefaultStall, Timeout: 10 * time.Minute,
	}
	c.Offload = OffloadConfig{QueueLimit: 50000, CapRatio: 0.5}
	c.Promotion = PromotionConfig{Admission: 2, QueueLimit: 50000, MaxPerHeartbeat: 1}
	c.DynamicReplication = DynamicReplicationConfig{Mode: ReplicationOff, HeatWindow: 10 * time.Second, AdmissionQPS: 0.8, MaxReplicas: 2}
	c.NoF = NoFConfig{
		EvictionRatio: 0.05, EvictionWatermark: 0.90,
		HeartbeatInterval: 10 * time.Second, ProbeTimeout: time.Second, FailuresThreshold: 3,
	}
	c.CXL = CXLConfig{Path: "/dev/dax0.0", Size: 8 << 30}
	c.Disk = DiskConfig{ClusterID: "mooncake_cluster"}
	c.WeightImportIdle = 5 * time.Minute
}

func (c *Config) validateFar() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	share := func(name string, v float64) {
		if !(v >= 0 && v <= 1) {
			wrong("%s is %v, must be between 0 and 1", name, v)
		}
	}
	if t := c.Tasks; t.MaxFinished < 0 || t.MaxPending < 0 || t.MaxProcessing < 0 || t.PendingTimeout < 0 || t.ProcessingTimeout < 0 {
		wrong("Tasks is %+v, nothing in it may be negative", t)
	}
	switch t := c.Transfer; {
	case t.Executor != ExecutorAuto && t.Executor != ExecutorClient && t.Executor != ExecutorMaster:
		wrong("Transfer.Executor is %q, must be auto, client or master", t.Executor)
	case t.Takeover < 0:
		wrong("Transfer.Takeover is %v, must not be negative", t.Takeover)
	default:
		pump := t.pump()
		if err := pump.Validate(); err != nil {
			wrong("Transfer: %w", err)
		}
	}
	if q := c.Offload.QueueLimit; q < 1 || q > 100_000_000 {
		wrong("Offload.QueueLimit is %d, must be between 1 and 100000000", q)
	}
	share("Offload.CapRatio", c.Offload.CapRatio)
	if p := c.Promotion; p.Admission < 1 || p.Admission > 255 || p.QueueLimit < 0 || p.MaxPerHeartbeat < 1 {
		wrong("Promotion is %+v: Admission must be between 1 and 255, QueueLimit not negative, MaxPerHeartbeat at least 1", p)
	}
	switch d := c.DynamicReplication; {
	case d.Mode != ReplicationOff && d.Mode != ReplicationObserve && d.Mode != ReplicationEnforce:
		wrong("DynamicReplication.Mode is %q, must be off, observe or enforce", d.Mode)
	case d.HeatWindow < time.Second || !(d.AdmissionQPS > 0) || d.MaxReplicas < 1:
		wrong("DynamicReplication is %+v: HeatWindow must be at least 1s, AdmissionQPS positive, MaxReplicas at least 1", d)
	}
	if c.WeightImportIdle <= 0 {
		wrong("WeightImportIdle is %v, must be positive", c.WeightImportIdle)
	}
	share("NoF.EvictionRatio", c.NoF.EvictionRatio)
	share("NoF.EvictionWatermark", c.NoF.EvictionWatermark)
	if x := c.CXL; x.Enabled && x.Size < slab {
		wrong("CXL.Size is %d, must be at least %d", x.Size, slab)
	}
	if n := c.NoF; n.HeartbeatInterval <= 0 || n.ProbeTimeout <= 0 || n.FailuresThreshold < 1 {
		wrong("NoF is %+v: HeartbeatInterval and ProbeTimeout must be positive, FailuresThreshold at least 1", n)
	}
	return errors.Join(errs...)
}

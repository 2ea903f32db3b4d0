package app

import (
	"errors"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// TransferConfig is about copies, moves and drains that the master carries out itself. Memory and Bandwidth are as
// written, see Bytes. Metadata is MetadataAuto or an address as segment.OpenMetadata takes it, Protocol one of the
// constants, Devices names with commas between them.
type TransferConfig struct {
	Executor    string
	Takeover    time.Duration
	Memory      string
	Concurrency uint64
	Bandwidth   string
	Stall       time.Duration
	Timeout     time.Duration // 0 = none
	Metadata    string
	Protocol    string
	Devices     string
	Sysfs       string // "" = /sys
}

// MetadataAuto is the master's own metadata server, if there is one, then the one it cleans up in, then the owners of
// memory themselves.
const MetadataAuto = "auto"

// How the master reaches segments. TCP is always there.
const (
	TransferAuto = "auto" // RDMA too, where there is an active device
	TransferTCP  = "tcp"
	TransferRDMA = "rdma" // RDMA too, and it is an error if there is none
)

var transferFlags = []Flag{
	{
		Name: "transfer_executor", Kind: String, Default: core.ExecutorAuto, Group: GroupTasks,
		Help: "who carries out copies, moves and drains: client, the one that owns the source, as in the original; master, this process, always; auto, the client, and this process when the client is silent or hasn't fetched its task in time and the bytes can be reached",
		bind: func(c *Config) any { return &c.Transfer.Executor },
	},
	{
		Name: "transfer_takeover_ms", Kind: Uint64, Default: "3000", Group: GroupTasks, unit: time.Millisecond,
		Help: "with --transfer_executor=auto, milliseconds a client has to fetch a task",
		bind: func(c *Config) any { return &c.Transfer.Takeover },
	},
	{
		Name: "transfer_memory", Kind: String, Default: "64MB", Group: GroupTasks,
		Help: "buffers of the transfers that the master carries out: a number of bytes, optionally with B, KB, MB, GB or TB; 128KB for each of --transfer_concurrency at least",
		bind: func(c *Config) any { return &c.Transfer.Memory },
	},
	{
		Name: "transfer_concurrency", Kind: Uint32, Default: "8", Group: GroupTasks,
		Help: "objects that the master carries at the same moment; large ones take turns with others that wait",
		bind: func(c *Config) any { return &c.Transfer.Concurrency },
	},
	{
		Name: "transfer_bandwidth", Kind: String, Default: "0", Group: GroupTasks,
		Help: "most bytes per second that the master writes to targets, like 500MB; 0 = no limit",
		bind: func(c *Config) any { return &c.Transfer.Bandwidth },
	},
	{
		Name: "transfer_stall_timeout", Kind: Duration, Default: "30000", Group: GroupTasks,
		Help: "how long a piece of at most 4 MB may take to be read or written: milliseconds, or a number with ms, s, m or h",
		bind: func(c *Config) any { return &c.Transfer.Stall },
	},
	{
		Name: "transfer_timeout", Kind: Duration, Default: "600000", Group: GroupTasks,
		Help: "how long the master may take for one object, 0 = for ever",
		bind: func(c *Config) any { return &c.Transfer.Timeout },
	},
	{
		Name: "transfer_metadata", Kind: String, Default: MetadataAuto, Group: GroupTasks,
		Help: "where the master finds the segments: P2PHANDSHAKE, the http URL or etcd:// address of the store that the clients use; auto = its own metadata server if there is one, the one of --metadata_cleanup_on_timeout, then P2PHANDSHAKE",
		bind: func(c *Config) any { return &c.Transfer.Metadata },
	},
	{
		Name: "transfer_protocol", Kind: String, Default: TransferAuto, Group: GroupTasks,
		Help: "how the master reaches segments: tcp; rdma, TCP too where segments speak it; auto, RDMA too where this build and this machine have it",
		bind: func(c *Config) any { return &c.Transfer.Protocol },
	},
	{
		Name: "transfer_devices", Kind: String, Default: "", Group: GroupTasks,
		Help: "RDMA devices that the master uses, with commas between them; empty = all that are active",
		bind: func(c *Config) any { return &c.Transfer.Devices },
	},
	{
		Name: "transfer_sysfs", Kind: String, Default: "", Group: GroupTasks,
		Help: "where the kernel shows RDMA devices, where that isn't /sys",
		bind: func(c *Config) any { return &c.Transfer.Sysfs },
	},
}

// Bytes reads a number of bytes as transfer_memory and transfer_bandwidth are written; "0" is 0.
func (t *TransferConfig) Bytes(text string) (uint64, error) {
	if text == "0" {
		return 0, nil
	}
	n, err := policydoc.ParseQuota(text)
	if err != nil {
		return 0, errors.New("want a number of bytes, optionally with B, KB, MB, GB or TB, like 64MB")
	}
	return n, nil
}

func (c *Config) checkTransfer() error {
	t := &c.Transfer
	if t.Executor != core.ExecutorAuto && t.Executor != core.ExecutorClient && t.Executor != core.ExecutorMaster {
		return c.bad("transfer_executor", "want auto, client or master")
	}
	if t.Concurrency < 1 || t.Concurrency > 1024 {
		return c.bad("transfer_concurrency", "want 1 to 1024")
	}
	least := uint64(transfer.LeastMemory(int(t.Concurrency)))
	switch n, err := t.Bytes(t.Memory); {
	case err != nil:
		return c.bad("transfer_memory", "%w", err)
	case n < least:
		return c.bad("transfer_memory", "--transfer_concurrency=%d takes %d bytes at least", t.Concurrency, least)
	case n > 1<<40:
		return c.bad("transfer_memory", "want at most 1TB")
	}
	if _, err := t.Bytes(t.Bandwidth); err != nil {
		return c.bad("transfer_bandwidth", "%w, or 0 for no limit", err)
	}
	if t.Stall <= 0 {
		return c.bad("transfer_stall_timeout", "want a time above 0, like 30s")
	}
	if t.Protocol != TransferAuto && t.Protocol != TransferTCP && t.Protocol != TransferRDMA {
		return c.bad("transfer_protocol", "want auto, tcp or rdma")
	}
	if t.Metadata == MetadataAuto {
		return nil
	}
	m, err := segment.OpenMetadata(t.Metadata, "", nil)
	if err != nil {
		return c.bad("transfer_metadata", "%w", err)
	}
	return m.Close()
}

// transfer returns the part of the configuration that is the core's.
func (c *Config) transfer() core.TransferConfig {
	t := &c.Transfer
	memory, _ := t.Bytes(t.Memory) // Validate has read both
	bandwidth, _ := t.Bytes(t.Bandwidth)
	return core.TransferConfig{
		Executor: t.Executor, Takeover: t.Takeover, Memory: int(memory), Concurrency: int(t.Concurrency),
		Bandwidth: bandwidth, Stall: t.Stall, Timeout: t.Timeout,
	}
}

// devices are the names in Devices.
func (t *TransferConfig) devices() (names []string) {
	for name := range strings.SplitSeq(t.Devices, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

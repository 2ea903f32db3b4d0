package app

import (
	"fmt"
	"time"
)

// Config is everything the master is told at start. Durations are time.Durations whatever the
// unit of the flag. Default gives the values of an empty command line; Load the real ones.
type Config struct {
	ConfigPath string // "" = none was read
	ClusterID  string
	StateDir   string // "" = nothing outlives the process
	Behaviour  string // Behaviour0314 or Behaviour0313

	EmbeddedNode string // as written, see EmbeddedBytes

	RPC       RPCConfig
	Admin     AdminConfig
	Metadata  MetadataConfig
	Objects   ObjectsConfig
	Eviction  EvictionConfig
	Clients   ClientsConfig
	Tenants   TenantsConfig
	Placement PlacementConfig
	Storage   StorageConfig
	Log       LogConfig

	Tasks              TasksConfig
	Transfer           TransferConfig
	Offload            OffloadConfig
	Promotion          PromotionConfig
	DynamicReplication DynamicReplicationConfig
	KVEvents           KVEventsConfig
	NoF                NoFConfig
	CXL                CXLConfig
	Weights            WeightsConfig

	// What follows is parsed and checked so that command lines of the original keep working;
	// the features are not part of this build.
	HA       HAConfig
	Oplog    OplogConfig
	Snapshot SnapshotConfig

	origins map[string]Origin
}

// RPCConfig is about the listener the clients talk to. After Load, Port is the port to bind,
// 0 meaning any free one, and Host is an address even where an interface was named.
type RPCConfig struct {
	Host          string
	Port          int
	OldPort       int
	Interface     string
	IdleTimeout   time.Duration // 0 = none
	NoDelay       bool
	MaxFrameBytes uint64
}

// AdminConfig is about the HTTP server for operators and metrics. Port 0 is any free one.
type AdminConfig struct {
	Host       string
	Port       int
	Report     bool   // write the summary line to the log every 10 seconds
	MaxTenants uint64 // with metrics of their own; 0 = all
}

// The releases that a master can behave as.
const (
	Behaviour0313 = "0.3.13"
	Behaviour0314 = "0.3.14"
)

// MetadataConfig is about the store in which transfer engines find each other, and about
// cleaning up after expired clients there. RemoteURL is "" unless the cleanup has to go to a
// server outside this process; ClusterID is the element after "mooncake/" in its keys, "" =
// none.
type MetadataConfig struct {
	Enabled          bool
	Host             string
	Port             int
	CleanupOnTimeout bool
	RemoteURL        string
	ClusterID        string
}

// ObjectsConfig is about leases, pins and unfinished writes.
type ObjectsConfig struct {
	LeaseTTL        time.Duration
	SoftPinTTL      time.Duration
	MaxSoftPinTTL   time.Duration
	PutStartDiscard time.Duration
	PutStartRelease time.Duration
}

// EvictionConfig holds the watermarks, all shares from 0 to 1. A TenantHighWatermark of 0
// turns the tenants' background eviction off.
type EvictionConfig struct {
	Ratio               float64
	HighWatermark       float64
	TenantHighWatermark float64
	AllowSoftPinned     bool
}

// ClientsConfig is about liveness. OldTTL is the older flag's value; ActiveTTL is what
// counts.
type ClientsConfig struct {
	ActiveTTL    time.Duration
	SuspicionTTL time.Duration
	OldTTL       time.Duration
}

// What a write over the quota does.
const (
	ExceededEvict  = "evict"
	ExceededReject = "reject"
)

// TenantsConfig is about strict multi-tenant mode and where its policy comes from.
type TenantsConfig struct {
	Enabled          bool
	ConnectorType    string
	ConnectorURI     string
	ConnectorDir     string // "" = only the connectors built in
	ConnectorOptions string // as written, see Options
	Exceeded         string // ExceededEvict or ExceededReject

	ConnectorEnv          string // names, see EnvNames
	ConnectorSHA256       string // 64 hexadecimal digits, "" = any
	ConnectorMemory       string // as written, see MemoryLimit
	ConnectorStartTimeout time.Duration
	ConnectorRequired     bool
	MaxRemovalPercent     int // 0 to 100
}

// The placement strategies of this build.
const (
	StrategyRandom         = "random"
	StrategyFreeRatioFirst = "free_ratio_first"
	StrategyLocalFirst     = "local_first"
	StrategyCXL            = "cxl"
	StrategySSDFreeRatio   = "ssd_free_ratio_first"
)

// PlacementConfig says how segments are chosen and divided. After Load, Strategy is one of
// the constants and Allocator is "offset".
type PlacementConfig struct {
	Strategy  string
	Allocator string
}

// StorageConfig is what clients are told about their disks, and the shared file system.
type StorageConfig struct {
	DiskEviction    bool
	QuotaBytes      uint64
	RootDir         string
	FileSegmentSize int64
}

// HAConfig is about the election of a leader.
type HAConfig struct {
	Enabled       bool
	Backend       string
	Connection    string
	EtcdEndpoints string
	LeaseTTL      time.Duration
	PodName       string
	PodNamespace  string
}

// OplogConfig is about the log of operations that standby masters follow.
type OplogConfig struct {
	Enabled         bool
	PollInterval    time.Duration
	BatchMaxEntries uint64
	RetryTimeout    time.Duration
}

// SnapshotConfig is about snapshots of the metadata.
type SnapshotConfig struct {
	OplogEnabled bool
	Interval     time.Duration
	ObjectStore  string
	ChunkObjects uint64
	Enabled      bool
	Restore      bool
	Retention    uint64
}

// TasksConfig is about copy, move and drain.
type TasksConfig struct {
	MaxFinished       uint64
	MaxPending        uint64
	MaxProcessing     uint64
	PendingTimeout    time.Duration // 0 = never
	ProcessingTimeout time.Duration // 0 = never
	MaxRetries        uint64
}

// OffloadConfig is about clients' disks as a tier.
type OffloadConfig struct {
	Enabled    bool
	OnEvict    bool
	ForceEvict bool
	QueueLimit uint64
	CapRatio   float64
}

// PromotionConfig is about bringing objects back from disk to memory.
type PromotionConfig struct {
	OnHit        bool
	Threshold    uint64
	QueueLimit   uint64
	PerHeartbeat uint64
}

// DynamicReplicationConfig is about further copies of objects read often.
type DynamicReplicationConfig struct {
	Mode        string
	Window      time.Duration
	Threshold   float64
	MaxReplicas uint64
}

// KVEventsConfig is about publishing what is stored and removed.
type KVEventsConfig struct {
	Enabled       bool
	Endpoint      string
	BackendID     string
	QueueCapacity uint64
	Legacy        bool
	ObjectKey     bool
	ModelName     string
	TenantID      string
	Salt          string
	LoRA          string
	BlockSize     uint64
	DPRank        uint64
}

// NoFConfig is about NVMe-oF segments.
type NoFConfig struct {
	Enabled           bool
	EvictionRatio     float64
	HighWatermark     float64
	HeartbeatInterval time.Duration
	ProbeTimeout      time.Duration
	FailuresThreshold uint64
}

// CXLConfig is about CXL memory.
type CXLConfig struct {
	Enabled bool
	Path    string
	Size    uint64
}

// WeightsConfig is about the management of model weights.
type WeightsConfig struct {
	ImportIdleTimeout time.Duration
	OplogConfirmed    bool
}

// LogConfig is about where the log goes and how much is said. Dir "" means standard error.
type LogConfig struct {
	Dir        string
	MinLevel   int // 0 info, 1 warning, 2 and more error
	Verbosity  int // 1 debug, 2 and more trace; only with MinLevel 0
	ToStderr   bool
	AlsoStderr bool
}

// Default returns the configuration of an empty command line. The RPC port is that of the
// flags before resolution, that is 50051 in Port.
func Default() *Config {
	c := &Config{origins: map[string]Origin{}}
	for i := range table {
		f := &table[i]
		v, err := parseValue(f.Kind, f.Default)
		if err != nil {
			panic("flag " + f.Name + ": bad default " + f.Default)
		}
		f.store(c, v)
	}
	c.RPC.Port = c.RPC.OldPort
	return c
}

// origin returns where a flag's value came from, never without a key and a text.
func (c *Config) origin(name string) Origin {
	if o, ok := c.origins[name]; ok {
		return o
	}
	f := byName[name]
	return Origin{Key: name, Text: f.Default}
}

// Given lists the settings that somebody wrote down, in the order of the table, each as
// "name=value (place)": what to log at start.
func (c *Config) Given() []string {
	var out []string
	for i := range table {
		f := &table[i]
		o := c.origins[f.Name]
		if !o.Given() {
			continue
		}
		text := o.Text
		if f.bind != nil {
			text = show(f.bind(c))
		}
		place := "command line"
		switch o.Source {
		case FromConfigFile, FromFlagFile:
			place = fmt.Sprintf("%s:%d", o.File, o.Line)
		case FromEnvironment:
			place = "environment"
		}
		out = append(out, fmt.Sprintf("%s=%s (%s)", f.Name, text, place))
	}
	return out
}

// show prints the Config field behind a pointer.
func show(p any) string {
	switch p := p.(type) {
	case *bool:
		return fmt.Sprint(*p)
	case *string:
		return *p
	case *float64:
		return fmt.Sprint(*p)
	case *int:
		return fmt.Sprint(*p)
	case *int64:
		return fmt.Sprint(*p)
	case *uint64:
		return fmt.Sprint(*p)
	case *time.Duration:
		return p.String()
	default:
		return fmt.Sprintf("%T", p)
	}
}

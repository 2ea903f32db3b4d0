package connector

import (
	"time"

	"github.com/hashicorp/go-hclog"
)

// Spec says which connector, and which source.
type Spec struct {
	// Type is "file", or another of Stock, or names the executable mooncake-connector-<Type>.
	Type string
	// URI, ClusterID and Options are passed to the connector as they are.
	URI       string
	ClusterID string
	Options   map[string]string
	// Dir is the folder of executables for types that are not stock; "" when there is none.
	Dir string
	// Stock lists the types that the master's own executable serves.
	Stock []string
	// SHA256 is the hash that the executable must have, 64 hexadecimal digits; "" for any.
	SHA256 string
	// MemoryLimit is how many bytes of memory the process and its children may use; 0 for any.
	// Linux only.
	MemoryLimit uint64
}

// Deps is what a Connector works with. Clock, Rand and Logger are needed.
type Deps struct {
	Clock  Clock
	Rand   Rand
	Logger hclog.Logger
	// Self is the command that serves a stock type when "connector serve <type>" is added; nil
	// means this process's own executable.
	Self []string
	// Guard is the command of a process that runs Guard, for connectors that are not stock; nil
	// means none.
	Guard []string
	// Env are variables passed to the process, "KEY=value", besides PATH, HOME, TMPDIR, LANG,
	// TZ and those of the contract. Nothing else is inherited.
	Env []string
	// Timing bounds waiting; zero fields mean the defaults.
	Timing Timing
	// Optional makes Start succeed when the process can't be started, is not healthy, or
	// refuses its configuration; it is tried again until it works.
	Optional bool
	// Version is the master's own, for messages.
	Version string
	// Dialects are the protocols to offer; nil means those of this build.
	Dialects map[int]Dialect
}

// Clock tells the time of day.
type Clock interface{ Now() time.Time }

// Rand gives numbers in [0, n). It must be safe for concurrent use.
type Rand interface{ Uint64N(n uint64) uint64 }

// Timing are the bounds of waiting.
type Timing struct {
	Start   time.Duration // from starting a process to its handshake; 10 s
	Call    time.Duration // Describe, Configure, Load and Save, each; 10 s
	Silence time.Duration // a stream without heartbeat; 25 s
	Stop    time.Duration // from Stop to killing; 5 s
	// Retry is the first pause before a restart after a failed start, doubled each time up to
	// RetryMost, with jitter; 100 ms and 30 s. A process that had been configured is started again
	// after Retry at most at first, and after RetryReady at most if it keeps dying; 500 ms.
	Retry, RetryMost, RetryReady time.Duration
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&t.Start, 10*time.Second)
	set(&t.Call, 10*time.Second)
	set(&t.Silence, 25*time.Second)
	set(&t.Stop, 5*time.Second)
	set(&t.Retry, 100*time.Millisecond)
	set(&t.RetryMost, 30*time.Second)
	set(&t.RetryReady, 500*time.Millisecond)
	return t
}

func (d Deps) withDefaults() Deps {
	d.Timing = d.Timing.withDefaults()
	if d.Dialects == nil {
		d.Dialects = dialects
	}
	return d
}

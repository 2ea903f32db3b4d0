package connector

import (
	"fmt"
	"os"
	"path/filepath"
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
}

// Deps is what a Connector works with. Clock, Rand and Logger are needed.
type Deps struct {
	Clock  Clock
	Rand   Rand
	Logger hclog.Logger
	// Self is the command that serves a stock type when "connector serve <type>" is added; nil
	// means this process's own executable.
	Self []string
	// Env are variables passed to the process, "KEY=value", besides PATH, HOME, TMPDIR, LANG,
	// TZ and those of the contract. Nothing else is inherited.
	Env []string
	// Timing bounds waiting; zero fields mean the defaults.
	Timing Timing
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

// Names of flags, for messages.
const (
	flagType = "--tenant_quota_connector_type"
	flagURI  = "--tenant_quota_connector_uri"
	flagDir  = "--tenant_quota_connector_dir"
)

// command finds the executable of a type.
func (s Spec) command(self []string) ([]string, error) {
	for _, stock := range s.Stock {
		if stock != s.Type {
			continue
		}
		if self == nil {
			own, err := ownExecutable()
			if err != nil {
				return nil, fmt.Errorf("%s=%s: the master's own executable is not found: %w", flagType, s.Type, err)
			}
			self = []string{own}
		}
		return append(append([]string{}, self...), "connector", "serve", s.Type), nil
	}
	if s.Type == "" || filepath.Base(s.Type) != s.Type || s.Type[0] == '.' {
		return nil, fmt.Errorf("%s=%s: unsupported tenant quota connector type '%s': not a plain name", flagType, s.Type, s.Type)
	}
	if s.Dir == "" {
		return nil, fmt.Errorf("%s=%s: unsupported tenant quota connector type '%s': the master serves %v itself; for others set %s to the folder of mooncake-connector-%s",
			flagType, s.Type, s.Type, s.Stock, flagDir, s.Type)
	}
	path, err := filepath.Abs(filepath.Join(s.Dir, "mooncake-connector-"+s.Type))
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", flagDir, s.Dir, err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s=%s: unsupported tenant quota connector type '%s': %w", flagDir, s.Dir, s.Type, err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return nil, fmt.Errorf("%s=%s: unsupported tenant quota connector type '%s': %s is not an executable file", flagDir, s.Dir, s.Type, path)
	}
	return []string{path}, nil
}

// ownExecutable is the way to the running program. Linux has one that leads to the very same
// file even when another version was installed over it since.
func ownExecutable() (string, error) {
	const same = "/proc/self/exe"
	if _, err := os.Stat(same); err == nil {
		return same, nil
	}
	return os.Executable()
}

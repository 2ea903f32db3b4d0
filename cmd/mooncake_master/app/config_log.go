package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Level is the level of the logger these settings ask for.
func (l LogConfig) Level() hclog.Level {
	switch {
	case l.MinLevel >= 2:
		return hclog.Error
	case l.MinLevel == 1:
		return hclog.Warn
	case l.Verbosity >= 2:
		return hclog.Trace
	case l.Verbosity == 1:
		return hclog.Debug
	default:
		return hclog.Info
	}
}

// Open returns where the log goes: standard error, or a fresh file in Dir named
// mooncake_master.DATE-TIME.PID, with the link mooncake_master.INFO moved to it. The function
// returned closes the file.
func (l LogConfig) Open(now time.Time, pid int, stderr io.Writer) (io.Writer, func() error, error) {
	if l.Dir == "" || l.ToStderr {
		return stderr, func() error { return nil }, nil
	}
	name := fmt.Sprintf("mooncake_master.%s.%d", now.Format("20060102-150405"), pid)
	file, err := os.OpenFile(filepath.Join(l.Dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("--log_dir=%s: %w", l.Dir, err)
	}
	link := filepath.Join(l.Dir, "mooncake_master.INFO")
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, errors.Join(fmt.Errorf("--log_dir=%s: %w", l.Dir, err), file.Close())
	}
	if err := os.Symlink(name, link); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("--log_dir=%s: %w", l.Dir, err), file.Close())
	}
	if l.AlsoStderr {
		return io.MultiWriter(file, stderr), file.Close, nil
	}
	return file, file.Close, nil
}

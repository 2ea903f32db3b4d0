package connector

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// explain says in plain words what the plugin library and the kernel mean when a program does
// not start.
func (c *Connector) explain(err error, p *program) error {
	_, missing := os.Stat(p.path)
	switch text := err.Error(); {
	case errors.Is(err, fs.ErrNotExist) && missing == nil:
		return errors.New("the file is there, but not the interpreter that its first line names, or the loader it was linked for")
	case errors.Is(err, syscall.ENOEXEC):
		return errors.New("it is no program for this machine, nor a script whose first line is #! and its interpreter")
	case strings.Contains(text, "timeout while waiting for plugin to start"):
		return fmt.Errorf("it printed no handshake line within %v; %s=%v gives it more time", c.deps.Timing.Start, flagStart, 3*c.deps.Timing.Start)
	case strings.Contains(text, "Failed to read any lines from plugin's stdout"):
		return errors.New("it ended before it printed its handshake line")
	default:
		return err
	}
}

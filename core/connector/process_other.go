//go:build !linux

package connector

import "syscall"

// attributes puts a process in a group of its own, so that it does not get our Ctrl-C and can
// be killed with its children. Here it notices our end by itself: see sdk.Serve.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

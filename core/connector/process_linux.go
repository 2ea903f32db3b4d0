package connector

import "syscall"

// attributes puts a process in a group of its own, so that it does not get our Ctrl-C and can
// be killed with its children, and has the kernel kill it when the thread that starts it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

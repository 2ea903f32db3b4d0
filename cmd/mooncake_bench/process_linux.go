package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processCPU returns the processor time that a process has used so far, threads that have
// ended among it, in nanoseconds.
func processCPU(pid int) (time.Duration, error) {
	// The kernel makes the number of a process's clock of the complement of its pid; 2 asks
	// for what the scheduler counted, which is finer than the ticks in /proc.
	const scheduler = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &ts); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// ownCPU returns the processor time of this process.
func ownCPU() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// affinityOf returns the set that holds one core.
func affinityOf(core int) *unix.CPUSet {
	var set unix.CPUSet
	set.Set(core)
	return &set
}

// pinSelf keeps all threads of this process on one core until restore is called. Threads that
// the runtime makes later inherit it from one of these.
func pinSelf(core int) (restore func(), err error) {
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("reading the affinity: %w", err)
	}
	set := func(s *unix.CPUSet) error {
		// Twice, for threads that are made meanwhile.
		for range 2 {
			tasks, err := os.ReadDir("/proc/self/task")
			if err != nil {
				return err
			}
			for _, t := range tasks {
				tid, err := strconv.Atoi(t.Name())
				if err != nil {
					return err
				}
				if err := unix.SchedSetaffinity(tid, s); err != nil && !errors.Is(err, unix.ESRCH) {
					return err
				}
			}
		}
		return nil
	}
	if err := set(affinityOf(core)); err != nil {
		return nil, errors.Join(fmt.Errorf("--pin: core %d: %w", core, err), set(&before))
	}
	procs := runtime.GOMAXPROCS(1)
	return func() {
		runtime.GOMAXPROCS(procs)
		// Failing to undo leaves this process slower, not wrong.
		_ = set(&before)
	}, nil
}

// startPinned starts a command on one core, or anywhere if core is negative. The child dies
// with this process.
func startPinned(cmd *exec.Cmd, core int) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if core < 0 {
		return cmd.Start()
	}
	// A child inherits the affinity of the thread that makes it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("reading the affinity: %w", err)
	}
	if err := unix.SchedSetaffinity(0, affinityOf(core)); err != nil {
		return fmt.Errorf("--pin: core %d: %w", core, err)
	}
	err := cmd.Start()
	return errors.Join(err, unix.SchedSetaffinity(0, &before))
}

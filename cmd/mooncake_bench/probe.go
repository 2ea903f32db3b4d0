package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is what the kernel counts processor time in for /proc; it is the same on
// every architecture that Go runs on.
const ticksPerSecond = 100

// usage is what a process has used up to some moment.
type usage struct {
	cpu          time.Duration
	user, system uint64 // ticks; good for their proportion
	rss          uint64 // bytes
}

// since returns what was used between two moments. Memory is that of the later one.
func (u usage) since(before usage) usage {
	return usage{cpu: u.cpu - before.cpu, user: u.user - before.user, system: u.system - before.system, rss: u.rss}
}

// userShare is the part of the processor time that was spent outside the kernel; 0 when
// there is too little to tell.
func (u usage) userShare() float64 {
	if u.user+u.system == 0 {
		return 0
	}
	return float64(u.user) / float64(u.user+u.system)
}

// proc reads files below /proc, or below a directory of a test.
type proc string

// usage reads what a process has used.
func (p proc) usage(pid int) (usage, error) {
	dir := filepath.Join(string(p), strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	// The name of the program, in parentheses, may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const user, system, rss = 11, 12, 21 // counted from the state
	if len(fields) <= rss {
		return usage{}, fmt.Errorf("process %d: %s has only %d fields", pid, filepath.Join(dir, "stat"), len(fields))
	}
	var u usage
	var pages uint64
	for _, f := range []struct {
		index int
		to    *uint64
	}{{user, &u.user}, {system, &u.system}, {rss, &pages}} {
		if *f.to, err = strconv.ParseUint(fields[f.index], 10, 64); err != nil {
			return usage{}, fmt.Errorf("process %d: %w", pid, err)
		}
	}
	u.rss = pages * uint64(os.Getpagesize())
	u.cpu, err = processCPU(pid)
	if err != nil || p != "/proc" {
		u.cpu = p.coarseCPU(dir, u)
	}
	return u, nil
}

// coarseCPU is the processor time where the kernel hides the process's clock: of the threads
// that are alive, else in ticks.
func (p proc) coarseCPU(dir string, u usage) time.Duration {
	paths, err := filepath.Glob(filepath.Join(dir, "task", "*", "schedstat"))
	var sum time.Duration
	for _, path := range paths {
		text, readErr := os.ReadFile(path)
		if errors.Is(readErr, os.ErrNotExist) {
			continue // the thread has just ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, parseErr := strconv.ParseInt(first, 10, 64)
		if err = errors.Join(err, readErr, parseErr); err != nil {
			break
		}
		sum += time.Duration(ns)
	}
	if err != nil || sum == 0 {
		return time.Duration(u.user+u.system) * time.Second / ticksPerSecond
	}
	return sum
}

// busy returns the processor time that the whole machine has spent on anything.
func (p proc) busy() (time.Duration, error) {
	f, err := os.Open(filepath.Join(string(p), "stat"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	fields := strings.Fields(line)
	const idle, iowait, last = 4, 5, 8 // after the word cpu: user nice system idle iowait irq softirq steal
	if err != nil || len(fields) <= last || fields[0] != "cpu" {
		return 0, fmt.Errorf("%s: the first line is %q", f.Name(), line)
	}
	var ticks uint64
	for i := 1; i <= last; i++ {
		if i == idle || i == iowait {
			continue
		}
		n, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", f.Name(), err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

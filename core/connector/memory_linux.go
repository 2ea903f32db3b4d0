package connector

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// memoryPeriod is how often a process's memory is looked at.
const memoryPeriod = 100 * time.Millisecond

// prefer makes the kernel choose a connector rather than the master when memory runs out.
func prefer(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0) // best effort: it may be gone already
}

// watchMemory calls over with the bytes in use once a process and its children use more than
// limit; it ends with the process. What is counted is resident memory: limits on address
// space would count what garbage collectors reserve and never touch.
func watchMemory(pid int, limit uint64, exited <-chan struct{}, over func(used uint64)) {
	t := time.NewTicker(memoryPeriod)
	defer t.Stop()
	for {
		select {
		case <-exited:
			return
		case <-t.C:
			if used := resident(pid, 8); used > limit {
				over(used)
				return
			}
		}
	}
}

// resident sums the memory of a process and of its children, a few generations deep.
func resident(pid, depth int) uint64 {
	dir := "/proc/" + strconv.Itoa(pid)
	statm, err := os.ReadFile(dir + "/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(string(fields[1]), 10, 64)
	sum := pages * uint64(os.Getpagesize())
	tasks, err := os.ReadDir(dir + "/task")
	if err != nil || depth == 0 {
		return sum
	}
	for _, task := range tasks {
		kids, _ := os.ReadFile(dir + "/task/" + task.Name() + "/children") // not every kernel has it
		for _, kid := range bytes.Fields(kids) {
			if n, err := strconv.Atoi(string(kid)); err == nil {
				sum += resident(n, depth-1)
			}
		}
	}
	return sum
}

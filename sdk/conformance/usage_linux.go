package conformance

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// usageOf looks into a process; false when it can't.
func usageOf(pid int) (usage, bool) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	files, err := os.ReadDir(filepath.Join(folder, "fd"))
	if err != nil {
		return usage{}, false
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return usage{}, false
	}
	u := usage{files: len(files)}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		number, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "Threads":
			u.threads = number
		case "VmRSS":
			u.memory = number << 10
		}
	}
	return u, u.threads > 0
}

// members lists the living processes of a group. What nobody has waited for yet is dead.
func members(group int) ([]int, bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue // gone meanwhile
		}
		// The name in brackets may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 2 && fields[0] != "Z" && fields[0] != "X" && fields[2] == strconv.Itoa(group) {
			pids = append(pids, pid)
		}
	}
	return pids, true
}

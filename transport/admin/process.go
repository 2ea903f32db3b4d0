package admin

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// processMemory is what the system says about this process, in bytes; zero where it says
// nothing.
type processMemory struct {
	rss, peak, anon, file, shmem, vsize, swap float64
}

func readProcessMemory() processMemory {
	content, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return processMemory{} // no such file system here
	}
	return parseProcessMemory(content)
}

func parseProcessMemory(content []byte) processMemory {
	var m processMemory
	fields := map[string]*float64{
		"VmRSS": &m.rss, "VmHWM": &m.peak, "RssAnon": &m.anon, "RssFile": &m.file,
		"RssShmem": &m.shmem, "VmSize": &m.vsize, "VmSwap": &m.swap,
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		at := fields[name]
		if at == nil {
			continue
		}
		if kb, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 53); err == nil {
			*at = float64(kb) * 1024
		}
	}
	return m
}

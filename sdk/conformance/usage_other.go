//go:build !linux

package conformance

// usageOf can't look into a process here.
func usageOf(int) (usage, bool) { return usage{}, false }

// members can't list processes here.
func members(int) ([]int, bool) { return nil, false }

//go:build !linux

package connector

func prefer(int) {}

// watchMemory does nothing here.
func watchMemory(int, uint64, <-chan struct{}, func(uint64)) {}

package main

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
)

// registered counts the queue pairs and memory regions that a process has in the registry which all processes
// over softverbs share. It counts what is there, whatever the process itself believes.
func registered(path string, pid int) (queuePairs, regions int, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil // nobody has opened a device yet
	}
	const head, queueSlots, queueSlot, regionSlots, regionSlot = 24, 16384, 56, 32768, 56
	if err != nil {
		return 0, 0, err
	}
	if len(b) != head+queueSlots*queueSlot+regionSlots*regionSlot {
		return 0, 0, errors.New("the registry of softverbs has another layout than this program knows")
	}
	used := func(slot []byte, pidAt int) bool {
		return binary.LittleEndian.Uint32(slot) != 0 && int(int32(binary.LittleEndian.Uint32(slot[pidAt:]))) == pid
	}
	for b = b[head:]; len(b) > regionSlots*regionSlot; b = b[queueSlot:] {
		if used(b, 12) {
			queuePairs++
		}
	}
	for ; len(b) > 0; b = b[regionSlot:] {
		if used(b, 8) {
			regions++
		}
	}
	return queuePairs, regions, nil
}

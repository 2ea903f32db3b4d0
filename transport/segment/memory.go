package segment

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is memory outside the Go heap, which stays where it is until it is freed: adapters and peers know it by its address.
type Memory struct{ bytes []byte }

// NewMemory maps size bytes of zeroed memory.
func NewMemory(size int) (*Memory, error) {
	if size <= 0 {
		return nil, fmt.Errorf("memory of %d bytes: there must be at least one", size)
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("memory of %d bytes: %w", size, err)
	}
	return &Memory{b}, nil
}

// Bytes returns the memory.
func (m *Memory) Bytes() []byte { return m.bytes }

// Address returns where it begins.
func (m *Memory) Address() uint64 { return uint64(uintptr(unsafe.Pointer(&m.bytes[0]))) }

// Free gives it back. Nothing may use it any more.
func (m *Memory) Free() error {
	b := m.bytes
	m.bytes = nil
	return unix.Munmap(b)
}

package segment

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is memory outside the Go heap, which stays where it is until it is freed: adapters and peers know it by its address.
type Memory struct {
	bytes    []byte
	mapped   []byte // bytes and what was added to fill the last page
	fallback error
}

// Pages is the size of the pages of memory, in bytes. Large ones make registered memory cheap for an adapter to find its
// way in. PagesAny leaves it to the system, which is asked for large ones.
type Pages int

// The sizes that there are.
const (
	PagesAny Pages = 0
	Pages2M  Pages = 2 << 20
	Pages1G  Pages = 1 << 30
)

// ParsePages reads "", "2MB" or "1GB".
func ParsePages(text string) (Pages, error) {
	switch text {
	case "":
		return PagesAny, nil
	case "2MB":
		return Pages2M, nil
	case "1GB":
		return Pages1G, nil
	}
	return 0, fmt.Errorf("page size %q: it must be 2MB, 1GB or nothing", text)
}

// NewMemory maps size bytes of zeroed memory.
func NewMemory(size int) (*Memory, error) { return NewMemoryIn(PagesAny, size) }

// NewMemoryIn maps size bytes of zeroed memory in pages of a size. If the system has not set aside enough of them the
// memory is mapped in usual ones all the same, and Fallback says why.
func NewMemoryIn(pages Pages, size int) (*Memory, error) {
	if size <= 0 {
		return nil, fmt.Errorf("memory of %d bytes: there must be at least one", size)
	}
	m := new(Memory)
	switch pages {
	case PagesAny:
	case Pages2M, Pages1G:
		full := (size + int(pages) - 1) / int(pages) * int(pages)
		if full < size {
			return nil, fmt.Errorf("memory of %d bytes: it is too much", size)
		}
		b, err := mapPages(pages, full)
		if err == nil {
			m.mapped, m.bytes = b, b[:size:size]
			return m, nil
		}
		m.fallback = fmt.Errorf("there are no %d pages of %d MiB for memory of %d bytes: %w (see /sys/kernel/mm/hugepages/hugepages-%dkB/nr_hugepages)",
			full/int(pages), pages>>20, size, err, pages>>10)
	default:
		return nil, fmt.Errorf("memory in pages of %d bytes: there are those of 2 MiB and of 1 GiB", pages)
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("memory of %d bytes: %w", size, err)
	}
	if size >= int(Pages2M) {
		wishPages(b)
	}
	m.mapped, m.bytes = b, b
	return m, nil
}

// Fallback returns why memory is not in pages of the size that was asked for, nil if it is.
func (m *Memory) Fallback() error { return m.fallback }

// Bytes returns the memory.
func (m *Memory) Bytes() []byte { return m.bytes }

// Address returns where it begins.
func (m *Memory) Address() uint64 { return uint64(uintptr(unsafe.Pointer(&m.bytes[0]))) }

// Free gives it back. Nothing may use it any more.
func (m *Memory) Free() error {
	b := m.mapped
	m.bytes, m.mapped = nil, nil
	return unix.Munmap(b)
}

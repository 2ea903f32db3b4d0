//go:build !rdma || !cgo

package verbs

// Built reports whether the program was built with RDMA.
const Built = false

// Names returns the devices that there are. It fails with ErrNotBuilt.
func Names() ([]string, error) { return nil, ErrNotBuilt }

// Open opens a device by its name, with a completion queue of so many entries. It fails with ErrNotBuilt.
func Open(name string, completions int) (Device, error) { return nil, ErrNotBuilt }

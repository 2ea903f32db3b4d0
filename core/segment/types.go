package segment

import "strconv"

// UUID is a 128-bit identity of a client or a segment. Its text form is the two halves in
// decimal joined by "-", as logs and HTTP bodies show it.
type UUID struct {
	_      struct{} `pack:"trivial"`
	First  uint64
	Second uint64
}

// String returns the decimal text form, for example "12-34".
func (u UUID) String() string {
	return strconv.FormatUint(u.First, 10) + "-" + strconv.FormatUint(u.Second, 10)
}

// IsZero reports whether both halves are zero.
func (u UUID) IsZero() bool { return u.First == 0 && u.Second == 0 }

// Locality says where in its host a segment's memory lies. Clients from 0.3.14 on may send
// it with a segment; the master hands it back with each replica there.
type Locality struct {
	NUMANode int32
	HCANames []string
}

// Status is the state of a mounted segment; numbers are part of the wire.
type Status int32

// The states of a segment.
const (
	StatusUndefined            Status = 0
	StatusOK                   Status = 1
	StatusDraining             Status = 2
	StatusDrained              Status = 3
	StatusGracefullyUnmounting Status = 4
	StatusUnmounting           Status = 5
)

// String returns the upper-case name, as HTTP bodies show it.
func (s Status) String() string {
	switch s {
	case StatusOK:
		return "OK"
	case StatusDraining:
		return "DRAINING"
	case StatusDrained:
		return "DRAINED"
	case StatusGracefullyUnmounting:
		return "GRACEFULLY_UNMOUNTING"
	case StatusUnmounting:
		return "UNMOUNTING"
	default:
		return "UNDEFINED"
	}
}

// Info describes a segment as its client mounts it: Size bytes of memory at address Base of
// the client, reachable at Endpoint by Protocol ("tcp", "rdma").
type Info struct {
	ID       UUID
	Name     string
	Base     uint64
	Size     uint64
	Endpoint string
	Protocol string
	HostID   string
	Locality *Locality `pack:"compat=1"`
}

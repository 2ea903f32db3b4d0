package segment

import (
	"net"
	"sync"

	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// region is memory that is lent: a data port serves it, or RDMA devices know it.
type region struct {
	Buffer
	bytes []byte
	rails *rdma.Region // nil over TCP

	mu    sync.Mutex
	gone  bool
	users map[net.Conn]bool // the connections whose requests are at work on it
	idle  sync.Cond         // nobody is
}

func newRegion(b Buffer, bytes []byte) *region {
	r := &region{Buffer: b, bytes: bytes, users: make(map[net.Conn]bool)}
	r.idle.L = &r.mu
	return r
}

// begin notes that a request of a connection uses the region; false when it may not any more.
func (r *region) begin(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return false
	}
	r.users[conn] = true
	return true
}

func (r *region) end(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.users, conn); len(r.users) == 0 {
		r.idle.Broadcast()
	}
}

// retire lets no further request begin, cuts off the connections that are at work and waits until they are not.
func (r *region) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = true
	for conn := range r.users {
		conn.Close()
	}
	for len(r.users) > 0 {
		r.idle.Wait()
	}
}

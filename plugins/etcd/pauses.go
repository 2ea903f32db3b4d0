package etcd

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// The longest pauses between two attempts. While no member accepts connections a long pause does
// no harm, because the first connection ends it.
const (
	pauseFirst = 100 * time.Millisecond
	impatient  = 500 * time.Millisecond // somebody waits for the answer
	answering  = 2 * time.Second        // a member is connected, but can't answer
	refusing   = 4 * time.Second        // the cluster refuses us
	silent     = 30 * time.Second       // no member can be connected to
)

// pauses counts failures in a row.
type pauses struct{ n int }

// next returns how long to wait, at random up to a bound that doubles with every failure.
func (p *pauses) next(most time.Duration) time.Duration {
	d := min(pauseFirst<<min(p.n, 20), most)
	p.n++
	return rand.N(d)
}

// clusterName is how etcdctl writes the id of a cluster.
func clusterName(id uint64) string { return strconv.FormatUint(id, 16) }

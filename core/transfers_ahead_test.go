package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/transfer/transfertest"
)

// TestOwnersAreConnectedToAhead wants every owner that speaks RDMA connected to before anything is carried, again before
// the connection is idle for long, again soon after it could not be, and nobody when clients do the work.
func TestOwnersAreConnectedToAhead(t *testing.T) {
	for _, executor := range []string{core.ExecutorAuto, core.ExecutorMaster, core.ExecutorClient} {
		t.Run(executor, func(t *testing.T) {
			m := mastertest.NewCarrying(t, func(c *core.Config) { c.Transfer.Executor = executor })
			var want []string
			for n := range uint64(10) {
				s := mastertest.Segment(n+1, fmt.Sprint("s", n), 1<<20)
				if n%5 > 0 {
					s.Protocol = "rdma"
					want = append(want, s.Endpoint)
				}
				m.MountInfo(n+1, s)
			}
			if executor == core.ExecutorClient {
				want = nil
			}
			tried := func(d time.Duration) []string {
				t.Helper()
				for range d / time.Second {
					m.Advance(time.Second)
					m.AwaitTransfers()
				}
				got := m.Memory.Tried()
				slices.Sort(got)
				return got
			}
			if got := tried(5 * time.Second); !slices.Equal(got, want) {
				t.Errorf("connected to %v, want %v", got, want)
			}
			if got := tried(200 * time.Second); len(got) > 0 {
				t.Errorf("connected to %v again at once", got)
			}
			if got := tried(60 * time.Second); !slices.Equal(got, want) {
				t.Errorf("later connected to %v, want %v", got, want)
			}
			if executor == core.ExecutorClient {
				return
			}
			m.Memory.Before(func(_ context.Context, c transfertest.Call) error {
				if c.At.Owner == "s1" {
					return errors.New("it doesn't answer")
				}
				return nil
			})
			if got := tried(220 * time.Second); !slices.Equal(got, want) {
				t.Errorf("while one fails connected to %v, want %v", got, want)
			}
			if got := tried(11 * time.Second); !slices.Equal(got, []string{"s1"}) {
				t.Errorf("after a failure connected to %v, want s1", got)
			}
			m.Memory.Before(nil)
			if got := tried(11 * time.Second); !slices.Equal(got, []string{"s1"}) {
				t.Errorf("after another connected to %v, want s1", got)
			}
			fresh := mastertest.Segment(20, "new", 1<<20)
			fresh.Protocol = "rdma"
			m.MountInfo(20, fresh)
			if got := tried(2 * time.Second); !slices.Equal(got, []string{"new"}) {
				t.Errorf("connected to %v, want what was mounted just now", got)
			}
		})
	}
}

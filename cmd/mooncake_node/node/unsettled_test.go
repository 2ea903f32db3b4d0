package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/core/transfer/transfertest"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// TestWhatMayStillHappenIsNotRevoked fails the write to one of two targets in several ways.
func TestWhatMayStillHappenIsNotRevoked(t *testing.T) {
	at := func(owner string) object.ReplicaDescriptor {
		var r object.ReplicaDescriptor
		r.Location.Index = object.LocationMemory
		r.Location.Memory.Buffer.Endpoint, r.Location.Memory.Buffer.Address, r.Location.Memory.Buffer.Size = owner, 4096, 100
		return r
	}
	for name, c := range map[string]struct {
		fault error
		want  []string
	}{
		"nothing":             {nil, []string{"start", "end"}},
		"the owner has died":  {errors.New("connection refused"), []string{"start", "revoke"}},
		"the owner hangs":     {segment.ErrUnsettled, []string{"start"}},
		"it hangs, and how":   {fmt.Errorf("stalled; %w", segment.ErrUnsettled), []string{"start"}},
		"its memory has gone": {segment.ErrRejected, []string{"start", "revoke"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var memory transfertest.Memory
			for _, owner := range []string{"a", "b", "c"} {
				memory.Lend(owner, 4096, 100)
			}
			memory.Before(func(_ context.Context, call transfertest.Call) error {
				if call.Write && call.At.Owner == "c" {
					return c.fault
				}
				return nil
			})
			began := time.Now()
			pump := transfer.New(transfer.Config{Carrier: &memory, Now: func() int64 { return int64(time.Since(began)) }})
			defer pump.Close()
			var said []string
			say := func(word string) func(context.Context) error {
				return func(context.Context) error { said = append(said, word); return nil }
			}
			var n Node
			err := n.transfer(t.Context(), pump, &wire.TaskAssignment{}, &transferring{
				start: func(ctx context.Context) (object.ReplicaDescriptor, []object.ReplicaDescriptor, error) {
					return at("a"), []object.ReplicaDescriptor{at("b"), at("c")}, say("start")(ctx)
				},
				end: say("end"), revoke: say("revoke"),
			})
			if !errors.Is(err, c.fault) || (err == nil) != (c.fault == nil) || !slices.Equal(said, c.want) {
				t.Errorf("%v; the master is told %v, want %v", err, said, c.want)
			}
		})
	}
}

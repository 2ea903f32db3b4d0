//go:build rdma

package segment

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// TestRDMAAStoppedOwnerIsReadOverWhatWasConnected stops the other process after it has been connected to: by every
// way there is, as any of them may be used later.
func TestRDMAAStoppedOwnerIsReadOverWhatWasConnected(t *testing.T) {
	leaves(t)
	here := adapter(t, rdma.Options{}, 0, 1)
	c := railCarrier(t, P2P, here)
	if !c.Ahead(ProtocolRDMA) || c.Ahead(ProtocolTCP) || carrier(t, P2P).Ahead(ProtocolRDMA) {
		t.Error("it is worth it for RDMA with an adapter, and for nothing else")
	}
	cmd, at := child(t, P2P)
	if err := c.Connect(t.Context(), Place{Owner: at.Owner, Address: 1}); !errors.Is(err, ErrRejected) {
		t.Errorf("connecting to memory that nobody has lent: %v", err)
	}
	if err := c.Connect(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	for _, s := range here.Status() {
		if s.Endpoints != 2 {
			t.Errorf("%s has %d connections, want one to each of the owner's devices", s.Device, s.Endpoints)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	data, got := random(8<<20), make([]byte, 8<<20)
	if err := c.Write(t.Context(), at, data); err != nil {
		t.Fatal(err)
	}
	if err := c.Read(t.Context(), at, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Error("what was written to the stopped owner is not read")
	}
}

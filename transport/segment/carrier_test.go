package segment

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestOwnersThatNobodyAsksFor are forgotten after a while, and their connections closed, when others are asked for.
func TestOwnersThatNobodyAsksFor(t *testing.T) {
	everythingEnds(t)
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	c := NewCarrier(CarrierConfig{Metadata: peers{}, Now: now})
	t.Cleanup(c.Close)
	m := memory(t, 4096)
	ask := func() *Host {
		h := host(t, P2P, "127.0.0.1:1")
		if err := h.Register(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if err := c.Write(t.Context(), Place{Owner: h.Name(), Address: m.Address()}, []byte("x")); err != nil {
			t.Fatal(err)
		}
		return h
	}
	old, used := ask(), ask()
	later.Add(int64(mostIdle))
	if err := c.Write(t.Context(), Place{Owner: used.Name(), Address: m.Address()}, []byte("y")); err != nil {
		t.Fatal(err)
	}
	later.Add(int64(time.Minute))
	fresh := ask()
	c.mu.Lock()
	for h, want := range map[*Host]bool{old: false, used: true, fresh: true} {
		if is := c.peers[h.Name()] != nil; is != want {
			t.Errorf("it is %t that a host is known, want %t", is, want)
		}
	}
	c.mu.Unlock()
	port := old.lender.(tcpLender).port
	eventually(t, "the connection is closed", func() bool {
		port.mu.Lock()
		defer port.mu.Unlock()
		return len(port.callers) == 0
	})
}

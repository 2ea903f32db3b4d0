//go:build rdma

package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// adapter opens devices of the software kind, by number.
func adapter(t *testing.T, o rdma.Options, devices ...int) *rdma.Adapter {
	t.Helper()
	if os.Getenv("SOFTVERBS_DIR") == "" {
		t.Skip("SOFTVERBS_DIR is not set: run this by conformance/verbs.sh")
	}
	for _, d := range devices {
		o.Devices = append(o.Devices, fmt.Sprint("softrdma", d))
	}
	o.Sysfs, o.Now = filepath.Join(os.Getenv("SOFTVERBS_DIR"), "sys"), time.Now
	a, err := rdma.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		for _, s := range a.Status() {
			if s.Endpoints+s.Breaking+s.QueuePairs+s.InFlight > 0 {
				t.Errorf("after the end there are left: %+v", s)
			}
		}
	})
	return a
}

func railHost(t *testing.T, metadata string, a *rdma.Adapter) *Host {
	t.Helper()
	h, err := NewHost(t.Context(), HostConfig{Name: "127.0.0.1:17901", Metadata: metadata, Bind: "127.0.0.1", RDMA: a, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

func railCarrier(t *testing.T, metadata string, a *rdma.Adapter) *Carrier {
	t.Helper()
	c := carrier(t, metadata)
	c.cfg.RDMA = a
	return c
}

func TestRDMAWhatIsWrittenIsRead(t *testing.T) {
	for _, devices := range [][]int{{0}, {0, 1}} {
		for _, mode := range []string{"store", "asked"} {
			t.Run(fmt.Sprint(len(devices), mode), func(t *testing.T) {
				metadata := P2P
				if mode == "store" {
					metadata = store(t)
				}
				there, here := adapter(t, rdma.Options{}, devices...), adapter(t, rdma.Options{}, devices...)
				m := memory(t, 9<<20)
				h, c := railHost(t, metadata, there), railCarrier(t, metadata, here)
				if err := h.Register(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				for _, size := range []int{1, 17, 4096, 64<<10 + 1, 1 << 20, 9 << 20} {
					for _, registered := range []bool{true, false} {
						data, at := random(size), m.Address()+uint64(9<<20-size)
						from, to := data, make([]byte, size)
						if registered {
							from, to = buffer(t, c, size), buffer(t, c, size)
							copy(from, data)
						}
						if err := c.Write(t.Context(), Place{Owner: h.Name(), Address: at}, from); err != nil {
							t.Fatalf("writing %d bytes: %v", size, err)
						}
						if !bytes.Equal(m.Bytes()[9<<20-size:], data) {
							t.Errorf("%d bytes are not what was written", size)
						}
						if err := c.Read(t.Context(), Place{Owner: h.Name(), Address: at}, to); err != nil {
							t.Fatalf("reading %d bytes: %v", size, err)
						}
						if !bytes.Equal(to, data) {
							t.Errorf("%d bytes are not read as they were written", size)
						}
						clear(m.Bytes())
					}
				}
				for _, bad := range []struct {
					addr uint64
					size int
				}{{m.Address() + 1, 9 << 20}, {m.Address() - 1, 1}, {m.Address() + 9<<20, 1}, {^uint64(0) - 7, 16}, {1, 1}} {
					if err := c.Write(t.Context(), Place{Owner: h.Name(), Address: bad.addr}, random(bad.size)); !errors.Is(err, ErrRejected) {
						t.Errorf("writing %d bytes at %#x: %v", bad.size, bad.addr, err)
					}
				}
			})
		}
	}
}

// buffer returns registered memory.
func buffer(t *testing.T, c *Carrier, size int) []byte {
	t.Helper()
	b, release, err := c.Buffer(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return b
}

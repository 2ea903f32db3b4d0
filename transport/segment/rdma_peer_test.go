//go:build rdma

package segment

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// TestRDMAChild is no test but the other process of some.
func TestRDMAChild(t *testing.T) {
	metadata := os.Getenv("SEGMENT_TEST_HOST")
	if metadata == "" {
		t.Skip("it runs as a process of other tests")
	}
	h, m := railHost(t, metadata, adapter(t, rdma.Options{}, 0, 1)), memory(t, 64<<20)
	if err := h.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("serving %s %d\n", h.Name(), m.Address())
	bufio.NewReader(os.Stdin).ReadString('\n')
}

// child starts a host of 64 MiB in another process.
func child(t *testing.T, metadata string, env ...string) (*exec.Cmd, Place) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestRDMAChild$")
	cmd.Env = append(append(os.Environ(), "SEGMENT_TEST_HOST="+metadata), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "serving" {
			address, err := strconv.ParseUint(f[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return cmd, Place{Owner: f[1], Address: address}
		}
	}
	t.Fatal("the other process doesn't serve")
	return nil, Place{}
}

func TestRDMAThePeerIsKilled(t *testing.T) {
	adapter(t, rdma.Options{}, 0).Close() // skips without devices
	for _, op := range []string{"write", "read"} {
		t.Run(op, func(t *testing.T) {
			leaves(t)
			here := adapter(t, rdma.Options{}, 0, 1)
			c := railCarrier(t, P2P, here)
			b := buffer(t, c, 64<<20)
			cmd, at := child(t, P2P)
			do := c.Write
			if op == "read" {
				do = c.Read
			}
			if err := do(t.Context(), at, b); err != nil {
				t.Fatal(err)
			}
			var died time.Time
			var killing sync.WaitGroup
			killing.Add(1)
			begun := make(chan struct{})
			go func() {
				defer killing.Done()
				<-begun
				await(t, "something is under way", func() bool { return here.Status()[0].InFlight > 0 })
				cmd.Process.Kill()
				died = time.Now()
			}()
			close(begun)
			var err error
			for err == nil {
				err = do(t.Context(), at, b)
			}
			killing.Wait()
			if took := time.Since(died); took > 5*time.Second {
				t.Errorf("that it is gone was known after %v", took)
			}
			if !strings.Contains(err.Error(), "does not answer") && !strings.Contains(err.Error(), "refused") {
				t.Errorf("the cause is missing: %v", err)
			}
			quiet(t, here)
		})
	}
}

// TestRDMAMemoryInSeveralPieces is that of a device which takes little at once: it is published as several buffers, and a
// transfer may go across them.
func TestRDMAMemoryInSeveralPieces(t *testing.T) {
	here := adapter(t, rdma.Options{}, 0, 1)
	c := railCarrier(t, P2P, here)
	_, at := child(t, P2P, fmt.Sprint("SOFTVERBS_MAX_MR=", 20<<20))
	d, err := c.cfg.Metadata.Descriptor(t.Context(), at.Owner)
	if err != nil || len(d.Buffers) != 4 || d.Buffers[3].Length != 4<<20 {
		t.Fatalf("%v: %+v", err, d)
	}
	data, got := random(50<<20), buffer(t, c, 50<<20)
	at.Address += 7 << 20
	if err := c.Write(t.Context(), at, data); err != nil {
		t.Fatal(err)
	}
	if err := c.Read(t.Context(), at, got); err != nil || !bytes.Equal(got, data) {
		t.Errorf("it is not read as it was written: %v", err)
	}
	at.Address += 20 << 20
	if err := c.Write(t.Context(), at, data); !errors.Is(err, ErrRejected) {
		t.Errorf("beyond the last piece: %v", err)
	}
}

// TestRDMAIdlePeersAreMissed: the connections of a process that has gone are taken down though nobody uses them.
func TestRDMAIdlePeersAreMissed(t *testing.T) {
	leaves(t)
	there := adapter(t, rdma.Options{Probe: 50 * time.Millisecond}, 0)
	h, m := railHost(t, P2P, there), memory(t, 4096)
	if err := h.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	cmd, at := child(t, P2P)
	c := railCarrier(t, P2P, there) // the same endpoint serves both directions
	if err := c.Write(t.Context(), at, []byte("x")); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	quiet(t, there)
}

// silent is an owner that has published memory and whose handshake port takes connections and says nothing.
func silent(t *testing.T, metadata string) Place {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	md, err := OpenMetadata(metadata, "", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { md.Close() })
	d := &Descriptor{
		Name: "silent:1", Protocol: protocols{ProtocolRDMA}, Devices: []Device{{Name: "x", GID: strings.Repeat("00:", 15) + "01"}},
		Buffers: []Buffer{{Addr: 4096, Length: 1 << 30, Name: "*", LKey: []uint32{1}, RKey: []uint32{1}}}, PriorityMatrix: map[string][][]string{"cpu:0": {{"x"}, {}}},
	}
	if err := errors.Join(md.Announce(t.Context(), d.Name, l.Addr().String()), md.Publish(t.Context(), d)); err != nil {
		t.Fatal(err)
	}
	return Place{Owner: d.Name, Address: 4096}
}

func TestRDMAAPeerThatNeverAnswers(t *testing.T) {
	leaves(t)
	metadata := store(t)
	here := adapter(t, rdma.Options{HandshakeTimeout: time.Second}, 0)
	c, at := railCarrier(t, metadata, here), silent(t, metadata)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := within(t, 250*time.Millisecond, func() error { return c.Write(ctx, at, random(1<<20)) }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a deadline: %v", err)
	}
	quiet(t, here) // nobody waits for the handshake any more: it is given up, too
	err := within(t, 3*time.Second, func() error { return c.Write(t.Context(), at, random(1<<20)) })
	if err == nil || !strings.Contains(err.Error(), "the handshake takes too long") {
		t.Errorf("without a deadline: %v", err)
	}
	quiet(t, here)
}

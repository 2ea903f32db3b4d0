package app

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
)

// target answers one connection after the other with what answer makes of the first 128 bytes.
func target(t *testing.T, answer func(c net.Conn, request []byte)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			request := make([]byte, 128)
			if _, err := io.ReadFull(c, request); err == nil {
				answer(c, request)
			}
			c.Close()
		}
	}()
	host, port, _ := net.SplitHostPort(l.Addr().String())
	return "traddr:" + host + " trsvcid:" + port + " subnqn:nqn.2016-06.io.spdk:cnode1 trtype:TCP adrfam:IPv4 ns:1"
}

func TestProbeNoF(t *testing.T) {
	t.Parallel()
	asked := make(chan []byte, 1)
	healthy := target(t, func(c net.Conn, request []byte) {
		asked <- request
		response := make([]byte, 128)
		copy(response, "\x01\x00\x80\x00\x80\x00\x00\x00")
		_, _ = c.Write(response)
	})
	if err := probeNoF(healthy, 5*time.Second); err != nil {
		t.Errorf("a target that is well: %v", err)
	}
	if want := "\x00\x00\x80\x00\x80\x00\x00\x00" + strings.Repeat("\x00", 120); string(<-asked) != want {
		t.Error("asked in another way")
	}
	other := target(t, func(c net.Conn, _ []byte) { _, _ = io.WriteString(c, strings.Repeat("x", 128)) })
	if err := probeNoF(other, 5*time.Second); err == nil || !strings.Contains(err.Error(), "does not speak") {
		t.Errorf("something else: %v", err)
	}
	release := make(chan struct{})
	defer close(release)
	silent := target(t, func(net.Conn, []byte) { <-release })
	if err := probeNoF(silent, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a target that is silent: %v", err)
	}
	closes := target(t, func(net.Conn, []byte) {})
	if err := probeNoF(closes, 5*time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a target that closes: %v", err)
	}
	for endpoint, want := range map[string]bool{
		"trtype:RDMA traddr:127.0.0.1 trsvcid:4420": true,
		"trtype:PCIe traddr:0000:04:00.0":           true,
		"10.0.0.8:4420":                             true,
		"trtype:TCP traddr:127.0.0.1":               false,
		"":                                          true,
	} {
		if err := probeNoF(endpoint, time.Second); errors.Is(err, core.ErrNotProbed) != want || err == nil {
			t.Errorf("%q: %v, not probed must be %v", endpoint, err, want)
		}
	}
}

func TestTransportID(t *testing.T) {
	id := transportID("trtype=tcp traddr:fe80::1  TRSVCID:4420")
	if id["trtype"] != "tcp" || id["traddr"] != "fe80::1" || id["trsvcid"] != "4420" {
		t.Errorf("%v", id)
	}
}

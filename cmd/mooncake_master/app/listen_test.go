package app

import (
	"net"
	"strings"
	"testing"
)

func TestListenFamilies(t *testing.T) {
	for _, tt := range []struct{ host, dial string }{
		{"0.0.0.0", "127.0.0.1"},
		{"127.0.0.1", "127.0.0.1"},
		{"localhost", "localhost"},
	} {
		l, err := listen("rpc_address", "rpc_port", tt.host, 0)
		if err != nil {
			t.Fatalf("%s: %v", tt.host, err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		c, err := net.Dial("tcp", net.JoinHostPort(tt.dial, port))
		if err != nil {
			t.Errorf("%s is not reached at %s: %v", tt.host, tt.dial, err)
		} else {
			c.Close()
		}
		if ip := net.ParseIP(tt.host); ip != nil && !l.Addr().(*net.TCPAddr).IP.Equal(ip) {
			t.Errorf("%s listens on %s", tt.host, l.Addr())
		}
		l.Close()
	}
}

func TestListenOnBothFamilies(t *testing.T) {
	for _, host := range []string{"::", "[::]"} {
		l, err := listen("metrics_host", "metrics_port", host, 0)
		if err != nil {
			t.Fatalf("%s: %v", host, err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		c, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			t.Errorf("%s is not reached by IPv4: %v", host, err)
		} else {
			c.Close()
		}
		l.Close()
	}
}

func TestListenNamesTheFlagToBlame(t *testing.T) {
	taken, err := listen("rpc_address", "rpc_port", "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = listen("rpc_address", "rpc_port", "0.0.0.0", taken.Addr().(*net.TCPAddr).Port)
	if err == nil || !strings.Contains(err.Error(), "--rpc_port=") {
		t.Errorf("a port that is taken: %v", err)
	}
	for _, host := range []string{"192.0.2.1", "name.invalid"} { // addresses for documentation are nobody's
		_, err = listen("rpc_address", "rpc_port", host, 0)
		if err == nil || !strings.HasPrefix(err.Error(), "--rpc_address="+host+":") {
			t.Errorf("an address that is not this machine's: %v", err)
		}
	}
}

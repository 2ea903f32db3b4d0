package etcd

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// shared is the server that most tests use, each with a cluster id of its own.
var shared *server

// TestMain fails when goroutines are left over.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mooncake-etcd-")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	before := runtime.NumGoroutine()
	shared = newServer(filepath.Join(dir, "data"))
	if err := shared.start(); err != nil {
		fmt.Println("starting etcd:", err)
		os.Exit(1)
	}
	code := m.Run()
	shared.stop()
	for deadline := 150; code == 0 && runtime.NumGoroutine() > before; deadline-- {
		if deadline == 0 {
			stacks := make([]byte, 1<<20)
			fmt.Printf("goroutines are left over:\n%s\n", stacks[:runtime.Stack(stacks, true)])
			code = 1
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := os.RemoveAll(dir); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// server is a real etcd inside this process. It can be stopped and started again on the same
// port.
type server struct {
	dir       string
	client    string // host:port
	peer      string
	configure func(*embed.Config)
	running   *embed.Etcd
}

func newServer(dir string) *server {
	ports := freePorts("127.0.0.1", 2)
	return &server{dir: dir, client: ports[0], peer: ports[1], configure: func(*embed.Config) {}}
}

// start returns when the server answers.
func (s *server) start() error {
	config := embed.NewConfig()
	config.Dir = s.dir
	config.Logger, config.LogLevel, config.LogOutputs = "zap", "panic", []string{os.DevNull}
	config.TickMs, config.ElectionMs = 20, 200
	config.UnsafeNoFsync = true
	config.BcryptCost = 4
	place := func(scheme, at string) []url.URL { return []url.URL{{Scheme: scheme, Host: at}} }
	config.ListenClientUrls, config.AdvertiseClientUrls = place("http", s.client), place("http", s.client)
	config.ListenPeerUrls, config.AdvertisePeerUrls = place("http", s.peer), place("http", s.peer)
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	s.configure(config)
	running, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	s.running = running
	select {
	case <-running.Server.ReadyNotify():
		return nil
	case err := <-running.Err():
		return err
	case <-time.After(20 * time.Second):
		return fmt.Errorf("etcd at %s is not ready after 20 s", s.client)
	}
}

func (s *server) stop() {
	if s.running != nil {
		s.running.Close()
		s.running = nil
	}
}

// startServer starts a server of the test's own.
func startServer(t *testing.T, configure func(*embed.Config)) *server {
	t.Helper()
	s := newServer(filepath.Join(t.TempDir(), "data"))
	if configure != nil {
		s.configure = configure
	}
	s.restart(t)
	t.Cleanup(s.stop)
	return s
}

func (s *server) restart(t *testing.T) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdCluster is the cluster id of the masters of the etcd checks.
const etcdCluster = "suite"

// etcdKey is where their policy is.
const etcdKey = "mooncake-store/" + etcdCluster + "/tenant_quota_policy"

// member is an etcd process that can be killed and started again with what it holds.
type member struct {
	client string // host:port
	args   []string
	cmd    *exec.Cmd
	log    bytes.Buffer
}

// etcd starts an etcd that is alone in its cluster and waits until it serves.
func (e *environment) etcd(ctx context.Context, args ...string) (*member, *clientv3.Client, error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return nil, nil, errors.New("no etcd on PATH; conformance/etcd.sh installs it")
	}
	dir, err := os.MkdirTemp(e.dir, "etcd-")
	if err != nil {
		return nil, nil, err
	}
	client, peer, err := twoPorts()
	if err != nil {
		return nil, nil, err
	}
	m := &member{client: client}
	m.args = append([]string{
		path, "--name", "suite", "--data-dir", filepath.Join(dir, "data"), "--listen-client-urls", "http://" + client, "--advertise-client-urls", "http://" + client,
		"--listen-peer-urls", "http://" + peer, "--initial-advertise-peer-urls", "http://" + peer, "--initial-cluster", "suite=http://" + peer,
		"--heartbeat-interval", "20", "--election-timeout", "200", "--logger", "zap", "--log-level", "error",
	}, args...)
	if err := m.start(); err != nil {
		return nil, nil, err
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{client}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(), MaxCallSendMsgSize: 64 << 20})
	if err != nil {
		m.kill()
		return nil, nil, err
	}
	limited, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if _, err := c.Get(limited, "started"); err != nil {
		m.kill()
		return nil, nil, fmt.Errorf("etcd does not serve: %w: %s", err, strings.TrimSpace(m.log.String()))
	}
	return m, c, nil
}

func twoPorts() (one, two string, err error) {
	a, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer a.Close()
	b, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer b.Close()
	return a.Addr().String(), b.Addr().String(), nil
}

func (m *member) start() error {
	m.cmd = exec.Command(m.args[0], m.args[1:]...)
	m.cmd.Stderr = &m.log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return m.cmd.Start()
}

// kill ends it with -9.
func (m *member) kill() {
	_ = m.cmd.Process.Kill() // it may be gone already
	_ = m.cmd.Wait()         // killed
}

// write puts a document, again and again until etcd has taken it or the time is over.
func write(ctx context.Context, c *clientv3.Client, text string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		try, end := context.WithTimeout(ctx, time.Second)
		_, err := c.Put(try, etcdKey, text)
		end()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// startOn runs a master whose policy is in an etcd.
func (e *environment) startOn(ctx context.Context, m *member, args ...string) (*process, error) {
	return e.start(ctx, append([]string{
		"--enable_multi_tenants=true", "--tenant_quota_connector_type=etcd", "--tenant_quota_connector_uri=" + m.client, "--cluster_id=" + etcdCluster,
	}, args...)...)
}

// memory returns the resident memory of a process in bytes, 0 when it is gone.
func memory(pid int) int64 { return statusOf(pid, "VmRSS:") << 10 }

// statusOf returns a number of a process's status file, 0 when it is gone.
func statusOf(pid int, field string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			var n int64
			if _, err := fmt.Sscan(rest, &n); err == nil {
				return n
			}
		}
	}
	return 0
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// cluster is the members of an etcd.
type cluster []*member

// etcd starts an etcd that is alone in its cluster and waits until it serves.
func (e *environment) etcd(ctx context.Context, args ...string) (*member, *clientv3.Client, error) {
	all, c, err := e.etcds(ctx, 1, args...)
	if err != nil {
		return nil, nil, err
	}
	return all[0], c, nil
}

// etcds starts an etcd of n members and waits until it serves.
func (e *environment) etcds(ctx context.Context, n int, args ...string) (_ cluster, _ *clientv3.Client, err error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return nil, nil, errors.New("no etcd on PATH; conformance/etcd.sh installs it")
	}
	dir, err := os.MkdirTemp(e.dir, "etcd-")
	if err != nil {
		return nil, nil, err
	}
	ports, err := freePorts(2 * n)
	if err != nil {
		return nil, nil, err
	}
	var peers []string
	for i := range n {
		peers = append(peers, fmt.Sprintf("suite%d=http://%s", i, ports[n+i]))
	}
	var all cluster
	defer func() {
		if err != nil {
			all.kill()
		}
	}()
	for i := range n {
		name, client, peer := fmt.Sprint("suite", i), ports[i], ports[n+i]
		m := &member{client: client}
		m.args = append([]string{
			path, "--name", name, "--data-dir", filepath.Join(dir, name), "--listen-client-urls", "http://" + client, "--advertise-client-urls", "http://" + client,
			"--listen-peer-urls", "http://" + peer, "--initial-advertise-peer-urls", "http://" + peer, "--initial-cluster", strings.Join(peers, ","),
			"--heartbeat-interval", "20", "--election-timeout", "200", "--logger", "zap", "--log-level", "error",
		}, args...)
		if err := m.start(); err != nil {
			return nil, nil, err
		}
		all = append(all, m)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: ports[:n], DialTimeout: 5 * time.Second, Logger: zap.NewNop(), MaxCallSendMsgSize: 64 << 20})
	if err != nil {
		return nil, nil, err
	}
	limited, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if _, err = c.Get(limited, "started"); err != nil {
		all.kill() // its log is whole then
		err = fmt.Errorf("etcd does not serve: %w: %s", err, strings.TrimSpace(all[0].log.String()))
		all = nil
		return nil, nil, errors.Join(err, c.Close())
	}
	return all, c, nil
}

// freePorts returns places nobody listens at.
func freePorts(n int) ([]string, error) {
	var places []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all of them at the end: no place is given twice
		places = append(places, l.Addr().String())
	}
	return places, nil
}

// kill ends all members with -9.
func (c cluster) kill() {
	for _, m := range c {
		m.kill()
	}
}

// killed ends the members with -9, does something, and starts them again.
func (c cluster) killed(do func() error) error {
	c.kill()
	errs := []error{do()}
	for _, m := range c {
		errs = append(errs, m.start())
	}
	return errors.Join(errs...)
}

func (c cluster) pids() []int {
	var all []int
	for _, m := range c {
		all = append(all, m.cmd.Process.Pid)
	}
	return all
}

func (c cluster) clients() string {
	var all []string
	for _, m := range c {
		all = append(all, m.client)
	}
	return strings.Join(all, ",")
}

func (c cluster) shuffled() cluster {
	other := slices.Clone(c)
	rand.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
	return other
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

// writeOver is write for a cluster whose members hang: an attempt that was given up may reach a
// member much later, so each holds only for what was there when it was made.
func writeOver(ctx context.Context, c *clientv3.Client, text string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		try, end := context.WithTimeout(ctx, time.Second)
		done, err := writeOnce(try, c, text)
		end()
		if done || ctx.Err() != nil {
			return err
		}
	}
}

func writeOnce(ctx context.Context, c *clientv3.Client, text string) (done bool, err error) {
	there, err := c.Get(ctx, etcdKey)
	if err != nil {
		return false, err
	}
	var mod int64
	for _, kv := range there.Kvs {
		if mod = kv.ModRevision; string(kv.Value) == text {
			return true, nil // by an attempt that had no answer
		}
	}
	r, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(etcdKey), "=", mod)).Then(clientv3.OpPut(etcdKey, text)).Commit()
	return err == nil && r.Succeeded, err
}

// startOn runs a master whose policy is in an etcd.
func (e *environment) startOn(ctx context.Context, c cluster, args ...string) (*process, error) {
	return e.start(ctx, append([]string{
		"--enable_multi_tenants=true", "--tenant_quota_connector_type=etcd", "--tenant_quota_connector_uri=" + c.clients(), "--cluster_id=" + etcdCluster,
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

package etcd

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// member is an etcd of another release as a process of its own.
type member struct {
	client string
	args   []string
	cmd    *exec.Cmd
	log    bytes.Buffer
}

// members starts a cluster of processes, or skips the test where no etcd is installed.
func members(t *testing.T, n int, args ...string) []*member {
	t.Helper()
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("no etcd on PATH; conformance/etcd.sh installs it")
	}
	var all []*member
	var peers, cluster []string
	ports := freePorts("127.0.0.1", 2*n)
	for i := range n {
		peers = append(peers, ports[n+i])
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, peers[i]))
	}
	for i := range n {
		m := &member{client: ports[i]}
		m.args = append([]string{
			path, "--name", fmt.Sprint("m", i), "--data-dir", filepath.Join(t.TempDir(), "data"), "--listen-client-urls", "http://" + m.client,
			"--advertise-client-urls", "http://" + m.client, "--listen-peer-urls", "http://" + peers[i], "--initial-advertise-peer-urls", "http://" + peers[i],
			"--initial-cluster", strings.Join(cluster, ","), "--heartbeat-interval", "50", "--election-timeout", "500", "--log-level", "error", "--logger", "zap",
		}, args...)
		m.start(t)
		all = append(all, m)
	}
	t.Cleanup(func() {
		for _, m := range all {
			m.kill()
			if t.Failed() {
				t.Logf("%s: %.2000s", m.client, m.log.String())
			}
		}
	})
	put(t, operator(t, all[0].client), "started", "yes")
	return all
}

func (m *member) start(t *testing.T) {
	t.Helper()
	m.cmd = exec.Command(m.args[0], m.args[1:]...)
	m.cmd.Stderr = &m.log
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (m *member) kill() {
	_ = m.cmd.Process.Kill() // it may have been killed before
	_ = m.cmd.Wait()
}

func (m *member) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// TestOneProcess kills, stops, compacts and defragments a single member.
func TestOneProcess(t *testing.T) {
	m := members(t, 1)[0]
	other := operator(t, m.client)
	c := connectWithin(t, quick, m.client)
	r := watching(t, c)
	r.await(t, "absent")
	var last int64
	for i := range 50 {
		last = put(t, other, keyOf(t), fmt.Sprint("version ", i))
	}
	r.await(t, "doc version 49")
	if _, err := other.Compact(t.Context(), last, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Defragment(t.Context(), m.client); err != nil {
		t.Fatal(err)
	}
	put(t, other, keyOf(t), "defragmented")
	r.await(t, "doc defragmented")

	m.signal(t, syscall.SIGSTOP)
	if why := r.await(t, "unreachable"); !strings.Contains(why, keyOf(t)) {
		t.Errorf("%q does not name the key", why)
	}
	m.signal(t, syscall.SIGCONT)
	r.await(t, "doc defragmented")
	put(t, other, keyOf(t), "continued")
	r.await(t, "doc continued")

	m.kill()
	r.await(t, "unreachable")
	m.start(t)
	r.await(t, "doc continued")
	put(t, other, keyOf(t), "started again")
	r.await(t, "doc started again")
}

// TestQuorum takes members of three away, one by one.
func TestQuorum(t *testing.T) {
	all := members(t, 3)
	var places []string
	for _, m := range all {
		places = append(places, m.client)
	}
	other := operator(t, places[0], func(c *clientv3.Config) { c.Endpoints = places })
	c := connectWithin(t, quick, strings.Join(places, ";"))
	first, err := c.Save(t.Context(), []byte("one"), "")
	if err != nil {
		t.Fatal(err)
	}
	r := watching(t, c)
	r.await(t, "doc one")
	all[0].kill()
	put(t, other, keyOf(t), "with two")
	r.await(t, "doc with two")
	all[1].kill()
	r.await(t, "unreachable")
	_, err = c.Load(t.Context())
	unavailableAs(t, err, sdk.Unreachable, keyOf(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = c.Save(ctx, []byte("x"), first)
	unavailableAs(t, err, sdk.Unreachable)
	all[0].start(t)
	r.await(t, "doc with two")
	put(t, other, keyOf(t), "two again")
	r.await(t, "doc two again")
}

// TestHungMember stops one member of three after the other, so that the one that is watched is
// among them. Its connections stay; what is written to the others is told all the same, within
// what await waits.
func TestHungMember(t *testing.T) {
	all := members(t, 3)
	var places []string
	for _, m := range all {
		places = append(places, m.client)
	}
	r := watching(t, connect(t, strings.Join(places, ","), "request_timeout", "3s"))
	r.await(t, "absent")
	for i, m := range all {
		others := slices.Delete(slices.Clone(places), i, i+1)
		other := operator(t, others[0], func(c *clientv3.Config) { c.Endpoints = others })
		m.signal(t, syscall.SIGSTOP)
		for _, text := range []string{"one", "two", "three"} {
			text = fmt.Sprint(text, " without ", i)
			put(t, other, keyOf(t), text)
			r.await(t, "doc "+text)
		}
		m.signal(t, syscall.SIGCONT)
		put(t, other, keyOf(t), fmt.Sprint("with ", i))
		r.await(t, fmt.Sprint("doc with ", i))
	}
}

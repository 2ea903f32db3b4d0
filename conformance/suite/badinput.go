package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// badInput gives a running master nothing but nonsense: policy documents, frames, HTTP. It has
// to keep the policy, say what is wrong, leak nothing, and serve as before.
func badInput(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("bad-input", flag.ContinueOnError)
	documents := flags.String("documents", "testdata/policy/bad", "folder of malformed policy documents")
	most := flags.Int("most", 1000, "how many of them")
	frames := flags.Int("frames", 100_000, "random and mutated frames")
	requests := flags.Int("requests", 300, "malformed HTTP requests")
	seed := flags.Uint64("seed", rand.Uint64(), "of the frames and requests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	fmt.Printf("seed %d\n", *seed)
	path := filepath.Join(e.dir, "tenants.yaml")
	if err := save(path, goodPolicy(0)); err != nil {
		return err
	}
	p, err := e.start(ctx, "--enable_multi_tenants=true", "--tenant_quota_connector_uri="+path)
	if err != nil {
		return err
	}
	defer p.kill()
	var ops atomic.Int64
	healthy := func(n uint64) error {
		work, stop := context.WithCancel(ctx)
		time.AfterFunc(300*time.Millisecond, stop)
		defer stop()
		return traffic(work, p.rpc, n, &ops)
	}
	if err := healthy(1); err != nil {
		return err
	}
	before := descriptors(p.cmd.Process.Pid)

	docs, err := badDocuments(p, path, *documents, *most)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(*seed, 0))
	if err := badFrames(p.rpc, *frames, r); err != nil {
		return err
	}
	if err := badRequests(strings.TrimPrefix(p.http, "http://"), *requests, r); err != nil {
		return err
	}
	if err := healthy(1); err != nil {
		return fmt.Errorf("after the bad input: %w", err)
	}
	if !await(10*time.Second, func() bool { return descriptors(p.cmd.Process.Pid) <= before+2 }) {
		return fmt.Errorf("%d descriptors are open, %d were before", descriptors(p.cmd.Process.Pid), before)
	}
	if strings.Contains(p.tail(), "panic") {
		return fmt.Errorf("the log speaks of a panic: %s", p.tail())
	}
	fmt.Printf("%d malformed documents, %d frames, %d HTTP requests; %d descriptors before, %d after; serving as before\n",
		docs, *frames, *requests, before, descriptors(p.cmd.Process.Pid))
	return p.stop()
}

func goodPolicy(n int) string {
	return fmt.Sprintf("version: 1\ntenants:\n  - name: tenant-a\n    quota: %d\n  - name: tenant-b\n    quota: 64MB\n", 1<<30+n)
}

func save(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func descriptors(pid int) int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return -1
	}
	return len(entries)
}

// badDocuments saves one malformed document after the other, a good one after each.
func badDocuments(p *process, path, folder string, most int) (int, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return 0, errors.Join(err, fmt.Errorf("no *.yaml in %s", folder))
	}
	n := 0
	for i, name := range files[:min(len(files), most)] {
		text, err := os.ReadFile(name)
		if err != nil {
			return n, err
		}
		if err := save(path, string(text)); err != nil {
			return n, err
		}
		if !await(5*time.Second, func() bool { s, err := p.connectorState(); return err == nil && s == "degraded" }) {
			s, err := p.connectorState()
			return n, fmt.Errorf("%s: connector is %q, want degraded; %w", name, s, err)
		}
		want := uint64(1<<30 + i)
		if got, err := p.requested("tenant-a"); err != nil || got != want {
			return n, fmt.Errorf("%s: quota is %d, want %d as before; %w", name, got, want, err)
		}
		if err := save(path, goodPolicy(i+1)); err != nil {
			return n, err
		}
		if !await(5*time.Second, func() bool {
			got, err := p.requested("tenant-a")
			s, err2 := p.connectorState()
			return err == nil && err2 == nil && got == want+1 && s == "ready"
		}) {
			return n, fmt.Errorf("after %s a good document is not in force", name)
		}
		n++
	}
	return n, nil
}

// badFrames sends frames that are random, or real ones with bytes changed, and takes what comes
// back. The master may close the connection.
func badFrames(addr string, n int, r *rand.Rand) error {
	var conn net.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	rows := wire.Rows()
	for range n {
		if conn == nil {
			c, err := net.DialTimeout("tcp", addr, 5*time.Second)
			if err != nil {
				return fmt.Errorf("connecting for bad frames: %w", err)
			}
			conn = c
			go io.Copy(io.Discard, c) //nolint:errcheck // ends with the connection
		}
		row := rows[r.IntN(len(rows))]
		body := make([]byte, r.IntN(200))
		for i := range body {
			body[i] = byte(r.Uint32())
		}
		if r.IntN(2) == 0 && len(body) >= 5 {
			// A body that begins as it should.
			binary.LittleEndian.PutUint32(body, row.Requests[0].Hash|1)
			body[4] = []byte{0, 4, 8, 0x0c, 0x18, 5, 0x0d}[r.IntN(7)]
		}
		frame := make([]byte, 20, 20+len(body))
		frame[0] = 21
		binary.LittleEndian.PutUint32(frame[8:], row.ID)
		binary.LittleEndian.PutUint32(frame[12:], uint32(len(body)))
		frame = append(frame, body...)
		for range r.IntN(3) {
			if i := r.IntN(len(frame)); i < 12 || i >= 20 || r.IntN(20) == 0 {
				frame[i] = byte(r.Uint32())
			}
		}
		if err := conn.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		if _, err := conn.Write(frame); err != nil {
			conn.Close()
			conn = nil
		} else if r.IntN(200) == 0 {
			conn.Close() // in the middle of whatever is going on
			conn = nil
		}
	}
	return nil
}

// badRequests sends what is no HTTP, or no request that makes sense.
func badRequests(addr string, n int, r *rand.Rand) error {
	lines := []string{
		"GET /api/v1/tenant_quotas?tenant_id=%zz HTTP/1.1", "PUT /api/v1/tenant_quotas?tenant_id=a HTTP/1.1", "GET  HTTP/1.1", "BREW / HTTP/1.1",
		"GET /" + strings.Repeat("a", 9000) + " HTTP/1.1", "GET /metrics HTTP/9.9", "DELETE /api/v1/tenant_quotas?tenant_id=%00 HTTP/1.1",
		"POST /api/v1/soft_pin HTTP/1.1", "GET /query_key?key=\x01 HTTP/1.1", "\x16\x03\x01\x02\x00", "GET http:// HTTP/1.1", "PUT * HTTP/1.1",
	}
	headers := []string{
		"Content-Length: -1", "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked", "Host: \x00", "Content-Length: 5", "A" + strings.Repeat("b", 5000) + ": c",
		"Transfer-Encoding: identity, chunked", ": empty", "Content-Type", "Connection: close",
	}
	bodies := []string{"", "{", "{\"requested_quota_bytes\":1e999}", strings.Repeat("[", 5000), "\xff\xfe", "5\r\nhello\r\n", "{\"keys\":[" + strings.Repeat("\"k\",", 5000) + "\"k\"]}"}
	for i := range n {
		c, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err != nil {
			return fmt.Errorf("connecting for bad HTTP: %w", err)
		}
		text := lines[r.IntN(len(lines))] + "\r\n"
		for range r.IntN(4) {
			text += headers[r.IntN(len(headers))] + "\r\n"
		}
		text += "\r\n" + bodies[r.IntN(len(bodies))]
		_ = c.SetDeadline(time.Now().Add(2 * time.Second)) // a dead connection shows below
		if _, err := io.WriteString(c, text); err == nil {
			if status, err := bufio.NewReader(c).ReadString('\n'); err == nil && strings.HasPrefix(status, "HTTP/1.1 2") && strings.HasPrefix(text, "PUT ") {
				c.Close()
				return fmt.Errorf("request %d changed something: %q -> %s", i, text, status)
			}
		}
		c.Close()
	}
	return nil
}

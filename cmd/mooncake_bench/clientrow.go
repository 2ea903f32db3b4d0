package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/transport/segment"
)

//go:embed client.py
var clientScript []byte

// figuresOf makes the result of values that were put or got one after the other. Bandwidth is that of the calls
// alone; processor time is that of both ends, with what goes on between the calls.
func (t *transferTrial) figuresOf(count int, took, own, lender time.Duration) *result {
	gb := float64(count) * float64(t.block) / 1e9
	return &result{
		Kind: "segment", Ops: uint64(count), Seconds: took.Seconds(),
		Segment: &segmentSetting{Operation: t.title(), Block: t.block, InFlight: 1, Protocol: t.protocol, Metadata: segment.P2P},
		Figures: map[string]float64{
			figOps: float64(count) / took.Seconds(), figBandwidth: gb / took.Seconds(),
			figOwnPerGB: own.Seconds() / gb, figTargetPerGB: lender.Seconds() / gb, figCPUPerGB: (own + lender).Seconds() / gb,
		},
	}
}

// lentToPool is how much memory the one segment of a trial with clients has.
const lentToPool = 1 << 30

// clientWarm is how long clients put or get before they are measured.
const clientWarm = 300 * time.Millisecond

// clients are the sides of a trial with clients: this project's client and storage node, and the original's client
// twice. Both have a master of ours.
func (b *campaign) clients(t *transferTrial) (ours, theirs measurement, err error) {
	for _, f := range []struct{ name, value, what string }{
		{"python", b.python, "interpreter that has the original's client"},
		{"node", b.node, "command line of this project's storage node"},
		{"ours", b.ours, "command line of this project's master"},
	} {
		if f.value == "" {
			return nil, nil, wrong(f.name, "no %s, and these rows need one", f.what)
		}
	}
	line, err := parseCommand(b.ours)
	if err != nil {
		return nil, nil, wrong("ours", "%v", err)
	}
	node, err := parseCommand(b.node)
	if err != nil {
		return nil, nil, wrong("node", "%v", err)
	}
	var cfg settings
	cfg.define(flag.NewFlagSet("row", flag.ContinueOnError))
	at := func(f func(ctx context.Context, m *master, length time.Duration) (*result, error)) measurement {
		return func(ctx context.Context, length time.Duration) (_ *result, err error) {
			m, err := startMaster(ctx, line, &cfg, 0)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, m.stop()) }()
			return f(ctx, m, length)
		}
	}
	ours = at(func(ctx context.Context, m *master, length time.Duration) (*result, error) {
		return t.own(ctx, m, node, length)
	})
	theirs = at(func(ctx context.Context, m *master, length time.Duration) (*result, error) {
		return t.original(ctx, m, b.python, length)
	})
	return ours, theirs, nil
}

// own measures this project's client against its storage node.
func (t *transferTrial) own(ctx context.Context, m *master, node commandLine, length time.Duration) (_ *result, err error) {
	env, words := node.fill(map[string]string{"master": m.place.addr, "size": fmt.Sprint(lentToPool)})
	log, err := os.Create(filepath.Join(m.dir, "node.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	lender := &engineProcess{cmd: exec.Command(words[0], words[1:]...), role: "storage node", log: log.Name(), ended: make(chan struct{})}
	lender.cmd.Env = append(os.Environ(), env...)
	lender.cmd.Stdout, lender.cmd.Stderr = log, log
	if err := lender.launch(); err != nil {
		return nil, err
	}
	defer lender.leave()
	c, err := client.Dial(ctx, client.Config{Master: m.place.addr, Metadata: segment.P2P})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	value := make([]byte, t.block)
	seedOf().fill(value)
	begun := time.Now()
	for { // until the node has lent its memory
		if err = c.Put(ctx, "value", value); err == nil {
			break
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-lender.ended:
			return nil, lender.failure("it ended early")
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if time.Since(begun) > startTimeout {
			return nil, fmt.Errorf("nothing can be put: %w; %w", err, lender.failure("it lends nothing"))
		}
	}
	turn := t.getOnce
	if t.write {
		turn = t.putOnce
	}
	number := 0
	for until := time.Now().Add(clientWarm); number == 0 || time.Now().Before(until); number++ {
		if _, err := turn(ctx, c, number, value); err != nil {
			return nil, err
		}
	}
	count, took := 0, time.Duration(0)
	own := ownCPU()
	lent, err := processCPU(lender.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(length); count == 0 || time.Now().Before(until); count++ {
		d, err := turn(ctx, c, number+count, value)
		if err != nil {
			return nil, err
		}
		took += d
	}
	own = ownCPU() - own
	after, err := processCPU(lender.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	return t.figuresOf(count, took, own, after-lent), nil
}

// putOnce stores a value and removes it, and returns how long the storing took.
func (t *transferTrial) putOnce(ctx context.Context, c *client.Client, i int, value []byte) (time.Duration, error) {
	key := fmt.Sprint("value", i)
	begun := time.Now()
	if err := c.Put(ctx, key, value); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	return took, c.Remove(ctx, key, true)
}

// getOnce gets the value, and returns how long that took.
func (t *transferTrial) getOnce(ctx context.Context, c *client.Client, _ int, value []byte) (time.Duration, error) {
	begun := time.Now()
	got, err := c.Get(ctx, "value")
	took := time.Since(begun)
	if err != nil {
		return 0, err
	}
	const ends = 64
	if len(got) != len(value) || !bytes.Equal(got[:ends], value[:ends]) || !bytes.Equal(got[len(got)-ends:], value[len(value)-ends:]) {
		return 0, fmt.Errorf("%d bytes came back, not what was put", len(got))
	}
	return took, nil
}

// original measures the original's client against another one of it.
func (t *transferTrial) original(ctx context.Context, m *master, python string, length time.Duration) (_ *result, err error) {
	lender, err := startPython(m.dir, "lending client", python)
	if err != nil {
		return nil, err
	}
	defer lender.end()
	user, err := startPython(m.dir, "client", python)
	if err != nil {
		return nil, err
	}
	defer user.end()
	open := func(p *pythonProcess, lends int, buffer uint64) error {
		return p.order(ctx, "open", map[string]any{
			"local_hostname": "127.0.0.1", "metadata_server": segment.P2P, "global_segment_size": lends, "local_buffer_size": buffer,
			"protocol": t.protocol, "rdma_devices": "", "master_server_addr": m.place.addr,
		}, &struct{}{})
	}
	const least = 64 << 20
	if err := errors.Join(open(lender, lentToPool, least), open(user, 0, max(least, 4*t.block))); err != nil {
		return nil, err
	}
	var got struct {
		Count             int
		Took, Own, Lender float64
	}
	err = user.order(ctx, "measure", map[string]any{
		"write": t.write, "size": t.block, "warm": clientWarm.Seconds(), "seconds": length.Seconds(), "lender": lender.cmd.Process.Pid,
	}, &got)
	if err != nil {
		return nil, err
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return t.figuresOf(got.Count, seconds(got.Took), seconds(got.Own), seconds(got.Lender)), nil
}

// pythonProcess is a client of the original that takes orders.
type pythonProcess struct {
	*engineProcess
	orders  io.WriteCloser
	answers chan []byte
}

func startPython(dir, role, python string) (*pythonProcess, error) {
	log, err := os.Create(filepath.Join(dir, strings.ReplaceAll(role, " ", "-")+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &pythonProcess{
		engineProcess: &engineProcess{cmd: exec.Command(python, "-c", string(clientScript)), role: role, log: log.Name(), ended: make(chan struct{})},
		answers:       make(chan []byte, 1),
	}
	p.cmd.Stderr = log
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := startPinned(p.cmd, -1); err != nil {
		return nil, fmt.Errorf("starting %s: %w", python, err)
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if answer, ok := bytes.CutPrefix(lines.Bytes(), []byte("answer ")); ok {
				p.answers <- bytes.Clone(answer)
			}
		}
		_ = p.cmd.Wait() // what it printed says more than its status
		close(p.ended)
	}()
	return p, nil
}

// order gives an order and takes the answer to it.
func (p *pythonProcess) order(ctx context.Context, method string, settings map[string]any, answer any) error {
	settings["method"] = method
	line, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	if _, err := p.orders.Write(append(line, '\n')); err != nil {
		return p.failure("it takes no order")
	}
	select {
	case text := <-p.answers:
		var failed struct{ Error string }
		if err := errors.Join(json.Unmarshal(text, &failed), json.Unmarshal(text, answer)); err != nil {
			return fmt.Errorf("the %s answers %s: %w", p.role, text, err)
		}
		if failed.Error != "" {
			return p.failure(failed.Error)
		}
		return nil
	case <-p.ended:
		return p.failure("it ended early")
	case <-time.After(startTimeout):
		return p.failure(fmt.Sprintf("no answer within %v", startTimeout))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end has the client give everything back, and waits for it.
func (p *pythonProcess) end() {
	p.orders.Close()
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.engineProcess.end()
	}
}

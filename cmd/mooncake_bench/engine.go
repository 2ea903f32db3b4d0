package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// engine is the original's transfer_engine_bench: a process that lends memory and one that transfers.
type engine struct {
	binary string
	env    []string // beyond this process's
}

// The process that transfers says neither when it begins nor what it has used. It takes processor time evenly: that
// is read engineLead after its start, and for the last time engineTail before it is meant to end.
const (
	engineLead = 500 * time.Millisecond
	engineTail = 200 * time.Millisecond
)

var (
	engineAddress = regexp.MustCompile(`listening on (\S+:\d+)`)
	engineResult  = regexp.MustCompile(`Test completed: duration ([0-9.]+), batch count (\d+)`)
)

// measure measures one point. There is one thread that hands in as many transfers as are to be in flight and
// waits for all of them, which is the fastest that it does with them.
func (e *engine) measure(ctx context.Context, p segmentPoint, protocol, devices string, length time.Duration) (_ *result, err error) {
	dir, err := os.MkdirTemp("", "mooncake_bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout+length, fmt.Errorf("it has not ended within %v", startTimeout+length))
	defer cancel()
	seconds := max(1, int(math.Ceil(length.Seconds())))
	shared := []string{
		"--protocol=" + protocol, "--metadata_server=" + segment.P2P, fmt.Sprintf("--buffer_size=%d", max(p.span(), 1<<20)),
	}
	if protocol == segment.ProtocolRDMA {
		shared = append(shared, "--device_name="+devices)
	}
	target, err := e.start(dir, "target", append(shared, "--mode=target", "--local_server_name=127.0.0.1:17901"))
	if err != nil {
		return nil, err
	}
	defer target.end()
	name, err := target.lends(ctx)
	if err != nil {
		return nil, err
	}
	initiator, err := e.start(dir, "initiator", append(shared, "--mode=initiator", "--local_server_name=127.0.0.1:17902", "--segment_id="+name,
		"--operation="+operation(p.write), fmt.Sprintf("--block_size=%d", p.block), fmt.Sprintf("--batch_size=%d", p.inFlight), "--threads=1",
		fmt.Sprintf("--duration=%d", seconds)))
	if err != nil {
		return nil, err
	}
	defer initiator.end()
	begun := time.Now()
	var used [2][2]time.Duration // at two moments, by the one that transfers and the one that lends
	var at [2]time.Time
	for i, moment := range []time.Duration{engineLead, time.Duration(seconds)*time.Second - engineTail} {
		select {
		case <-time.After(time.Until(begun.Add(moment))):
		case <-initiator.ended:
			return nil, initiator.failure("it ended early")
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		at[i] = time.Now()
		for k, one := range []*engineProcess{initiator, target} {
			if used[i][k], err = processCPU(one.cmd.Process.Pid); err != nil {
				return nil, err
			}
		}
	}
	select {
	case <-initiator.ended:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	said := engineResult.FindStringSubmatch(initiator.said())
	if said == nil {
		return nil, initiator.failure("it did not say what it has measured")
	}
	// The expression lets nothing else through.
	took, _ := strconv.ParseFloat(said[1], 64)
	batches, _ := strconv.ParseUint(said[2], 10, 64)
	if took <= 0 || batches == 0 {
		return nil, initiator.failure("it transferred nothing")
	}
	r := &result{Kind: "segment", Ops: batches * uint64(p.inFlight), Seconds: took, Figures: map[string]float64{}}
	r.Segment = &segmentSetting{Operation: operation(p.write), Block: p.block, InFlight: p.inFlight, Protocol: protocol, Metadata: segment.P2P}
	r.Figures[figOps] = float64(r.Ops) / took
	r.Figures[figBandwidth] = r.Figures[figOps] * float64(p.block) / 1e9
	for k, figure := range []string{figOwnPerGB, figTargetPerGB} {
		cores := float64(used[1][k]-used[0][k]) / float64(at[1].Sub(at[0]))
		r.Figures[figure] = cores / r.Figures[figBandwidth]
		r.Figures[figCPUPerGB] += r.Figures[figure]
	}
	return r, nil
}

// engineProcess is one of the two processes.
type engineProcess struct {
	cmd   *exec.Cmd
	role  string
	log   string
	ended chan struct{} // closed when it has ended
}

func (e *engine) start(dir, role string, args []string) (*engineProcess, error) {
	p := &engineProcess{cmd: exec.Command(e.binary, args...), role: role, log: filepath.Join(dir, role+".log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Env = append(os.Environ(), e.env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	return p, p.launch()
}

// launch starts the process.
func (p *engineProcess) launch() error {
	if err := startPinned(p.cmd, -1); err != nil {
		return fmt.Errorf("starting %s: %w", p.cmd.Path, err)
	}
	go func() {
		_ = p.cmd.Wait() // what it printed says more than its status
		close(p.ended)
	}()
	return nil
}

// leave ends a process that takes SIGTERM as a hint, and waits for it.
func (p *engineProcess) leave() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.end()
	}
}

// end ends the process, which takes no other hint, and waits for it.
func (p *engineProcess) end() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

func (p *engineProcess) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (p *engineProcess) failure(what string) error {
	text := strings.TrimSpace(p.said())
	const most = 1000
	return fmt.Errorf("the %s of transfer_engine_bench: %s; it printed: %s", p.role, what, text[max(0, len(text)-most):])
}

// lends waits until the process lends memory, and returns the name it does so by.
func (p *engineProcess) lends(ctx context.Context) (string, error) {
	metadata, err := segment.OpenMetadata(segment.P2P, "", time.Now)
	if err != nil {
		return "", err
	}
	defer metadata.Close()
	for {
		if m := engineAddress.FindStringSubmatch(p.said()); m != nil {
			if d, err := metadata.Descriptor(ctx, m[1]); err == nil && len(d.Buffers) > 0 {
				return m[1], nil
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-p.ended:
			return "", p.failure("it ended early")
		case <-ctx.Done():
			return "", fmt.Errorf("%w: %w", p.failure("it lends nothing"), context.Cause(ctx))
		}
	}
}

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	core "github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// Routes of the master's admin interface, which the released masters have, too.
const (
	segmentsPath = "/get_all_segments"
	drainPath    = "/api/v1/drain_jobs"
)

const (
	// drainPoll is how often a drain job is looked at.
	drainPoll = 500 * time.Millisecond
	// drainAhead is how many moves the master may have ready for each that is carried out: it looks for more only now
	// and then.
	drainAhead = 16
)

// drain moves what is on the node to others, as far as that can be done within the DrainTimeout.
func (n *Node) drain(ctx context.Context) {
	n.leaving.Store(true)
	if n.cfg.DrainTimeout <= 0 {
		n.cfg.Log.Info("leaving without a drain, as configured: what is only on this node is lost")
		return
	}
	limited, cancel := context.WithTimeoutCause(ctx, n.cfg.DrainTimeout, fmt.Errorf("it took longer than %v", n.cfg.DrainTimeout))
	defer cancel()
	begun := n.cfg.Now()
	n.cfg.Log.Info("leaving: moving what is on this node to others", "segment", n.name, "timeout", n.cfg.DrainTimeout)
	job, err := n.moveAway(limited)
	if err != nil {
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		n.cfg.Log.Error("the drain did not come to its end: what is only on this node is lost", "error", err,
			"moved", job.Succeeded, "bytes", job.Bytes, "waiting", job.Blocked+job.Active, "failed", job.Failed)
		return
	}
	n.cfg.Log.Info("everything has been moved", "objects", job.Succeeded, "bytes", job.Bytes, "took", n.cfg.Now().Sub(begun).Round(time.Millisecond))
}

// drainJob is what the master says of a job.
type drainJob struct {
	ID        string   `json:"job_id"`
	Status    string   `json:"status_name"`
	Segments  []string `json:"segments"`
	Succeeded uint64   `json:"succeeded_units"`
	Failed    uint64   `json:"failed_units"`
	Blocked   uint64   `json:"blocked_units"`
	Active    uint64   `json:"active_units"`
	Bytes     uint64   `json:"migrated_bytes"`
	Message   string   `json:"message"`
}

// moveAway has the master drain the node's segments and waits for the end of that.
func (n *Node) moveAway(ctx context.Context) (job drainJob, err error) {
	status, err := ask(ctx, &n.link, wire.QuerySegmentStatus, &wire.QuerySegmentStatusRequest{SegmentName: n.name})
	switch {
	case errors.Is(err, errcode.SegmentNotFound), err == nil && status == core.StatusDrained:
		return job, nil // nothing is on them: the master has begun anew, or somebody was here before
	case err != nil:
		return job, err
	}
	if job.ID, err = n.beginDrain(ctx); err != nil {
		return job, err
	}
	for {
		if err := n.lookAt(ctx, &job); err != nil {
			return job, err
		}
		switch job.Status {
		case drain.Succeeded.String():
			return job, nil
		case drain.Failed.String(), drain.Canceled.String():
			return job, errors.New(job.Message)
		}
		if !wait(ctx, drainPoll) {
			return job, ctx.Err()
		}
	}
}

// lookAt reads a job anew. A master that does not answer is asked again.
func (n *Node) lookAt(ctx context.Context, job *drainJob) error {
	return n.patiently(ctx, "the drain job can't be looked at", func(ctx context.Context) error {
		fresh := *job
		err := n.admin(ctx, http.MethodGet, drainPath+"/query?job_id="+url.QueryEscape(job.ID), nil, &fresh)
		if errors.Is(err, errcode.JobNotFound) {
			return hopeless{errors.New("the master has begun anew and has forgotten the drain job, and every object")}
		}
		if err == nil {
			*job = fresh
		}
		return err
	})
}

// beginDrain asks for a drain job, or finds the one that somebody has begun already.
func (n *Node) beginDrain(ctx context.Context) (id string, err error) {
	names, err := n.adminText(ctx, segmentsPath)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(strings.Fields(names), func(name string) bool { return name != n.name }) {
		return "", errors.New("there is no other segment that what is on this node could be moved to")
	}
	body, err := json.Marshal(map[string]any{"segments": []string{n.name}, "max_concurrency": drainAhead * n.cfg.Tasks})
	if err != nil {
		return "", err
	}
	var made drainJob
	err = n.admin(ctx, http.MethodPost, drainPath, body, &made)
	if !errors.Is(err, errcode.UnavailableInStatus) {
		return made.ID, err
	}
	var all struct {
		Data []drainJob `json:"data"`
	}
	if n.admin(ctx, http.MethodGet, drainPath, nil, &all) == nil { // our masters' only
		for _, job := range all.Data {
			if slices.Contains(job.Segments, n.name) && (job.Status == drain.Running.String() || job.Status == drain.Created.String()) {
				return job.ID, nil
			}
		}
	}
	return "", err
}

// admin sends a request to the master's admin interface; a refusal is the code in it.
func (n *Node) admin(ctx context.Context, method, path string, body []byte, into any) error {
	status, text, err := n.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		var no struct {
			Code errcode.Code `json:"error_code"`
		}
		if json.Unmarshal(text, &no) == nil && no.Code != errcode.OK {
			return fmt.Errorf("%s %s at %s: %w", method, path, n.cfg.Admin, no.Code)
		}
		return fmt.Errorf("%s %s at %s: status %d", method, path, n.cfg.Admin, status)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s at %s: %w", method, path, n.cfg.Admin, err)
	}
	return nil
}

func (n *Node) adminText(ctx context.Context, path string) (string, error) {
	status, text, err := n.send(ctx, http.MethodGet, path, nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET %s at %s: status %d", path, n.cfg.Admin, status)
	}
	return string(text), err
}

// adminClient keeps no connection, not even one that came too late to be used: it would hold up the master's end.
var adminClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// send makes one request.
func (n *Node) send(ctx context.Context, method, path string, body []byte) (status int, text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+n.cfg.Admin+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	resp, err := adminClient.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("the master's admin interface, which a drain needs: %w", err)
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return resp.StatusCode, text, err
}

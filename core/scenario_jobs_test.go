package core_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

// The commands about drain jobs, copies that the master wants itself and NVMe-oF segments.

// DoDrain takes a name for the job, segments, and targets= and concurrency= where they are not the default.
func (s *scenario) DoDrain(c call) errcode.Code {
	r := drain.Request{Concurrency: drain.DefaultConcurrency}
	if targets, found := c.option("targets"); found {
		r.Targets = strings.Split(targets, ",")
	}
	if n, found := c.option("concurrency"); found {
		r.Concurrency = uint32(parseBytes(c.t, n))
	}
	r.Segments = c.list(1)
	id, code := s.CreateDrainJob(r)
	if code == errcode.OK {
		s.tasks.enter(c.args[0], id)
	}
	return code
}

// DoDrainStatus answers how far a job has come.
func (s *scenario) DoDrainStatus(c call) string {
	r, code := s.QueryDrainJob(s.tasks.ids[c.args[0]])
	if code != errcode.OK {
		return strconv.Itoa(int(code))
	}
	return fmt.Sprintf("%v succeeded %d failed %d blocked %d active %d migrated %s", r.Status, r.Succeeded, r.Failed, r.Blocked, r.Active, bytesText(r.MigratedBytes))
}

// DoDrainMessage answers what is said about a job.
func (s *scenario) DoDrainMessage(c call) string {
	r, _ := s.QueryDrainJob(s.tasks.ids[c.args[0]])
	return r.Message
}

// DoCancelDrain cancels a job; with a second word, patiently.
func (s *scenario) DoCancelDrain(c call) errcode.Code {
	_, code := s.CancelDrainJob(s.tasks.ids[c.args[0]], len(c.args) > 1)
	return code
}

// DoWork does the moves and copies that a client is asked for, as clients do, and answers with which keys. With
// the word failing it says that it could not.
func (s *scenario) DoWork(c call) []string {
	all, _ := s.FetchTasks(mastertest.ID(c.client), 1000)
	did := []string{}
	for _, a := range all {
		var p struct {
			Tenant  string `json:"tenant_id"`
			Key     string `json:"key"`
			Source  string `json:"source"`
			Target  string `json:"target"`
			Targets []string
		}
		if err := json.Unmarshal([]byte(a.Payload), &p); err != nil {
			c.t.Fatal(err)
		}
		code, id := errcode.TransferFail, mastertest.ID(c.client)
		switch {
		case len(c.args) > 0:
		case a.Type == task.Move:
			if _, code = s.MoveStart(id, p.Tenant, p.Key, p.Source, p.Target); code == errcode.OK {
				code = s.MoveEnd(id, p.Tenant, p.Key)
			}
		default:
			if _, code = s.CopyStart(id, p.Tenant, p.Key, p.Source, p.Targets); code == errcode.OK {
				code = s.CopyEnd(id, p.Tenant, p.Key)
			}
		}
		status := task.Success
		if code != errcode.OK {
			status = task.Failed
		}
		did = append(did, p.Key)
		if code := s.MarkTaskToComplete(id, task.Completion{ID: a.ID, Status: status}); code != errcode.OK {
			c.t.Errorf("ending of a task: %v", code)
		}
	}
	slices.Sort(did)
	return did
}

// token reads token=TASK, the proposal that a task is about, or token=TASK+1, one that is like it but of
// another version, or token=other.
func (s *scenario) token(c *call) (p core.Proposal) {
	name, _ := c.option("token")
	if name == "other" {
		return core.Proposal{Lease: segment.UUID{First: 1, Second: 1}, Epoch: 1}
	}
	name, newer := strings.CutSuffix(name, "+1")
	var payload task.CopyPayload
	if err := json.Unmarshal([]byte(s.tasks.payloads[name]), &payload); err != nil {
		c.t.Fatalf("token of %q: %v", name, err)
	}
	p = core.Proposal{Lease: segment.UUID{First: payload.LeaseHigh, Second: payload.LeaseLow}, Epoch: payload.Epoch}
	if newer {
		p.Epoch++
	}
	return p
}

// DoDynamicCopyStart is DoCopyStart of a copy that the master wants.
func (s *scenario) DoDynamicCopyStart(c call) string {
	p := s.token(&c)
	tenantName, key := c.key(0)
	plan, code := s.DynamicCopyStart(mastertest.ID(c.client), tenantName, key, c.args[1], c.list(2), p)
	if code != errcode.OK {
		return strconv.Itoa(int(code))
	}
	return endpoints(plan.Targets)
}

func (s *scenario) DoDynamicCopyEnd(c call) errcode.Code {
	p := s.token(&c)
	tenantName, key := c.key(0)
	return s.DynamicCopyEnd(mastertest.ID(c.client), tenantName, key, p)
}

func (s *scenario) DoDynamicCopyRevoke(c call) errcode.Code {
	p := s.token(&c)
	tenantName, key := c.key(0)
	return s.DynamicCopyRevoke(mastertest.ID(c.client), tenantName, key, p)
}

// DoWanted answers what a task copies where.
func (s *scenario) DoWanted(c call) string {
	var p task.CopyPayload
	if err := json.Unmarshal([]byte(s.tasks.payloads[c.args[0]]), &p); err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("%s/%s from %s to %s", p.TenantID, p.Key, p.Source, strings.Join(p.Targets, ","))
}

// DoMountNof mounts an NVMe-oF segment.
func (s *scenario) DoMountNof(c call) errcode.Code {
	i := mastertest.Segment(c.client, c.args[0], parseBytes(c.t, c.args[1]))
	return s.MountNoFSegment(core.NoFSegment{ID: i.ID, Name: i.Name, Base: i.Base, Size: i.Size, Endpoint: i.Endpoint}, mastertest.ID(c.client))
}

func (s *scenario) DoUnmountNof(c call) errcode.Code {
	return s.UnmountNoFSegment(c.segment(0), mastertest.ID(c.client))
}

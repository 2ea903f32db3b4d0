package core_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

// The commands about copies, moves and tasks. Tasks have the names that the commands which create
// them give them.

// taskNames remembers what tasks are called and what their clients were told.
type taskNames struct {
	ids      map[string]segment.UUID
	names    map[segment.UUID]string
	payloads map[string]string
}

func newTaskNames() taskNames {
	return taskNames{map[string]segment.UUID{}, map[segment.UUID]string{}, map[string]string{}}
}

func (n *taskNames) enter(name string, id segment.UUID) {
	n.ids[name], n.names[id] = id, name
}

func endpoints(replicas []object.ReplicaDescriptor) string { return strings.Join(names(replicas), " ") }

// list reads a,b,c where - is nothing.
func (c *call) list(i int) []string {
	if c.args[i] == "-" {
		return nil
	}
	return strings.Split(c.args[i], ",")
}

// DoCopyStart takes tenant/key, source and targets, and answers where replicas are being made.
func (s *scenario) DoCopyStart(c call) string {
	tenantName, key := c.key(0)
	plan, code := s.CopyStart(mastertest.ID(c.client), tenantName, key, c.args[1], c.list(2))
	if code != errcode.OK {
		return strconv.Itoa(int(code))
	}
	if got := endpoints([]object.ReplicaDescriptor{plan.Source}); got != c.args[1] {
		c.t.Errorf("copy of %s from %s, not from %s", key, got, c.args[1])
	}
	return endpoints(plan.Targets)
}

func (s *scenario) DoCopyEnd(c call) errcode.Code {
	tenantName, key := c.key(0)
	return s.CopyEnd(mastertest.ID(c.client), tenantName, key)
}

func (s *scenario) DoCopyRevoke(c call) errcode.Code {
	tenantName, key := c.key(0)
	return s.CopyRevoke(mastertest.ID(c.client), tenantName, key)
}

// DoMoveStart takes tenant/key, source and target, and answers where a replica is being made, or
// "none" where there is one already.
func (s *scenario) DoMoveStart(c call) string {
	tenantName, key := c.key(0)
	plan, code := s.MoveStart(mastertest.ID(c.client), tenantName, key, c.args[1], c.args[2])
	switch {
	case code != errcode.OK:
		return strconv.Itoa(int(code))
	case plan.Target == nil:
		return "none"
	}
	return endpoints([]object.ReplicaDescriptor{*plan.Target})
}

func (s *scenario) DoMoveEnd(c call) errcode.Code {
	tenantName, key := c.key(0)
	return s.MoveEnd(mastertest.ID(c.client), tenantName, key)
}

func (s *scenario) DoMoveRevoke(c call) errcode.Code {
	tenantName, key := c.key(0)
	return s.MoveRevoke(mastertest.ID(c.client), tenantName, key)
}

// DoCreateCopyTask takes a name for the task, tenant/key and targets.
func (s *scenario) DoCreateCopyTask(c call) errcode.Code {
	tenantName, key := c.key(1)
	id, code := s.CreateCopyTask(tenantName, key, c.list(2))
	if code == errcode.OK {
		s.tasks.enter(c.args[0], id)
	}
	return code
}

// DoCreateMoveTask takes a name for the task, tenant/key, source and target.
func (s *scenario) DoCreateMoveTask(c call) errcode.Code {
	tenantName, key := c.key(1)
	id, code := s.CreateMoveTask(tenantName, key, c.args[2], c.args[3])
	if code == errcode.OK {
		s.tasks.enter(c.args[0], id)
	}
	return code
}

// DoFetchTasks takes how many, 16 if not said, and answers the names of the tasks. Those that the master
// made itself get the names own1, own2, ...
func (s *scenario) DoFetchTasks(c call) []string {
	n := uint64(16)
	if len(c.args) > 0 {
		n = parseBytes(c.t, c.args[0])
	}
	all, code := s.FetchTasks(mastertest.ID(c.client), n)
	if code != errcode.OK {
		return []string{strconv.Itoa(int(code))}
	}
	fetched := []string{}
	for _, a := range all {
		name, known := s.tasks.names[a.ID]
		if !known {
			for i := 1; !known; i++ {
				name = fmt.Sprint("own", i)
				_, taken := s.tasks.ids[name]
				known = !taken
			}
			s.tasks.enter(name, a.ID)
		}
		s.tasks.payloads[name] = a.Payload
		fetched = append(fetched, name)
	}
	return fetched
}

// DoPayload answers what the client that has fetched a task was told.
func (s *scenario) DoPayload(c call) string { return s.tasks.payloads[c.args[0]] }

// DoMark takes a task, failed, success or a number, and a message.
func (s *scenario) DoMark(c call) errcode.Code {
	var status task.Status
	switch c.args[1] {
	case "failed":
		status = task.Failed
	case "success":
		status = task.Success
	default:
		status = task.Status(parseBytes(c.t, c.args[1]))
	}
	return s.MarkTaskToComplete(mastertest.ID(c.client), task.Completion{ID: s.tasks.ids[c.args[0]], Status: status, Message: strings.Join(c.args[2:], " ")})
}

// DoQueryTask answers what a task is, how far it has come, whose it is and what was said about it.
func (s *scenario) DoQueryTask(c call) string {
	v, code := s.QueryTask(s.tasks.ids[c.args[0]])
	if code != errcode.OK {
		return strconv.Itoa(int(code))
	}
	kind := map[task.Type]string{task.Copy: "copy", task.Move: "move"}[v.Type]
	status := map[task.Status]string{task.Pending: "pending", task.Processing: "processing", task.Failed: "failed", task.Success: "success"}[v.Status]
	return strings.TrimSpace(fmt.Sprintf("%s %s c%d %s", kind, status, v.AssignedClient.First, v.Message))
}

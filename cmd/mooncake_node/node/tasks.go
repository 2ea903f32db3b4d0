package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	core "github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

const (
	fetchPeriod = time.Second
	leavePeriod = 100 * time.Millisecond // while the node is being drained
	// spacePause is waited before another try when a target is full, longer each time, as the released clients do.
	spacePause = 50 * time.Millisecond
	// settleTime is waited before memory is given up that a failed write may still reach.
	settleTime = time.Second
)

// work fetches copies and moves from the master and carries them out, Tasks of them at a time. While there are
// any it asks for more as soon as there is room.
func (n *Node) work(ctx context.Context) {
	pump := transfer.New(transfer.Config{
		Carrier: own{n.carrier, n}, Now: func() int64 { return n.cfg.Now().UnixNano() },
		Memory: int(n.cfg.TransferMem), Concurrency: n.cfg.Tasks,
	})
	defer pump.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	room, freed := make(chan struct{}, n.cfg.Tasks), make(chan struct{}, 1)
	for range n.cfg.Tasks {
		room <- struct{}{}
	}
	for {
		var list []wire.TaskAssignment
		if free := len(room); free > 0 {
			// What can't be fetched shows in the pings, too.
			list, _ = ask(ctx, &n.link, wire.FetchTasks, &wire.FetchTasksRequest{ClientID: n.id, BatchSize: uint64(free)})
		}
		for _, a := range list {
			<-room // there are no more than asked for; a master that sends more waits here
			wg.Go(func() {
				n.perform(ctx, pump, &a)
				room <- struct{}{}
				select {
				case freed <- struct{}{}:
				default:
				}
			})
		}
		period := fetchPeriod
		if n.leaving.Load() {
			period = leavePeriod
		}
		pause := time.NewTimer(period)
		select {
		case <-ctx.Done():
		case <-freed:
		case <-pause.C:
		}
		pause.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// perform carries out one task and tells the master how it ended.
func (n *Node) perform(ctx context.Context, pump *transfer.Pump, a *wire.TaskAssignment) {
	n.counters.tasksActive.Add(1)
	defer n.counters.tasksActive.Add(-1)
	done := wire.TaskCompletion{ID: a.ID, Status: wire.TaskSuccess, Message: "Task completed successfully"}
	var err error
	kind, outcome := "copy", "success"
	if a.Type == wire.TaskReplicaMove {
		kind = "move"
		err = n.move(ctx, pump, a)
	} else {
		err = n.copy(ctx, pump, a)
	}
	if err != nil {
		done.Status, done.Message, outcome = wire.TaskFailed, err.Error(), "failure"
		n.cfg.Log.Warn("task failed", "task", a.ID, "kind", kind, "payload", a.Payload, "error", err)
	}
	n.counters.task(kind, outcome)
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := do(ctx, &n.link, wire.MarkTaskToComplete, &wire.MarkTaskToCompleteRequest{ClientID: n.id, Request: done}); err != nil {
		n.cfg.Log.Warn("the master could not be told how a task ended", "task", a.ID, "error", err)
	}
}

// detached is for what has to be said at the end, whether or not ctx has ended.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
}

// transferring is a copy or a move between its start and its end, as calls to the master.
type transferring struct {
	start       func(context.Context) (source object.ReplicaDescriptor, targets []object.ReplicaDescriptor, err error)
	end, revoke func(context.Context) error
}

func (n *Node) copy(ctx context.Context, pump *transfer.Pump, a *wire.TaskAssignment) error {
	p, err := copyPayload(a.Payload)
	if err != nil {
		return err
	}
	start := func(ctx context.Context) (object.ReplicaDescriptor, []object.ReplicaDescriptor, error) {
		plan, err := ask(ctx, &n.link, wire.CopyStart, &wire.CopyStartRequest{ClientID: n.id, Key: p.Key, TenantID: p.TenantID, SrcSegment: p.Source, TgtSegments: p.Targets})
		return plan.Source, plan.Targets, err
	}
	t := transferring{
		start: start,
		end: func(ctx context.Context) error {
			return do(ctx, &n.link, wire.CopyEnd, &wire.CopyEndRequest{ClientID: n.id, Key: p.Key, TenantID: p.TenantID})
		},
		revoke: func(ctx context.Context) error {
			return do(ctx, &n.link, wire.CopyRevoke, &wire.CopyRevokeRequest{ClientID: n.id, Key: p.Key, TenantID: p.TenantID})
		},
	}
	if lease := (core.UUID{First: p.LeaseHigh, Second: p.LeaseLow}); !lease.IsZero() {
		n.dynamic(&t, &p, lease)
	}
	return n.transfer(ctx, pump, a, &t)
}

// dynamic makes a copy one that the master wants itself: its calls show the lease.
func (n *Node) dynamic(t *transferring, p *task.CopyPayload, lease core.UUID) {
	t.start = func(ctx context.Context) (object.ReplicaDescriptor, []object.ReplicaDescriptor, error) {
		plan, err := ask(ctx, &n.link, wire.DynamicReplicaCopyStart, &wire.DynamicReplicaCopyStartRequest{
			ClientID: n.id, Key: p.Key, TenantID: p.TenantID, SrcSegment: p.Source, TgtSegments: p.Targets,
			DynamicReplicationLeaseID: lease, DynamicReplicationVersionEpoch: p.Epoch,
		})
		return plan.Source, plan.Targets, err
	}
	t.end = func(ctx context.Context) error {
		return do(ctx, &n.link, wire.DynamicReplicaCopyEnd, &wire.DynamicReplicaCopyEndRequest{
			ClientID: n.id, Key: p.Key, TenantID: p.TenantID, DynamicReplicationLeaseID: lease, DynamicReplicationVersionEpoch: p.Epoch,
		})
	}
	t.revoke = func(ctx context.Context) error {
		return do(ctx, &n.link, wire.DynamicReplicaCopyRevoke, &wire.DynamicReplicaCopyRevokeRequest{
			ClientID: n.id, Key: p.Key, TenantID: p.TenantID, DynamicReplicationLeaseID: lease, DynamicReplicationVersionEpoch: p.Epoch,
		})
	}
}

func (n *Node) move(ctx context.Context, pump *transfer.Pump, a *wire.TaskAssignment) error {
	p, err := movePayload(a.Payload)
	if err != nil {
		return err
	}
	return n.transfer(ctx, pump, a, &transferring{
		start: func(ctx context.Context) (object.ReplicaDescriptor, []object.ReplicaDescriptor, error) {
			plan, err := ask(ctx, &n.link, wire.MoveStart, &wire.MoveStartRequest{ClientID: n.id, Key: p.Key, TenantID: p.TenantID, SrcSegment: p.Source, TgtSegment: p.Target})
			if err != nil || plan.Target == nil {
				return plan.Source, nil, err
			}
			return plan.Source, []object.ReplicaDescriptor{*plan.Target}, nil
		},
		end: func(ctx context.Context) error {
			return do(ctx, &n.link, wire.MoveEnd, &wire.MoveEndRequest{ClientID: n.id, Key: p.Key, TenantID: p.TenantID})
		},
		revoke: func(ctx context.Context) error {
			return do(ctx, &n.link, wire.MoveRevoke, &wire.MoveRevokeRequest{ClientID: n.id, Key: p.Key, TenantID: p.TenantID})
		},
	})
}

// transfer is one copy or move from its start to its end; what fails in between is revoked, unless it may
// still happen.
func (n *Node) transfer(ctx context.Context, pump *transfer.Pump, a *wire.TaskAssignment, t *transferring) error {
	source, targets, err := t.start(ctx)
	for try := uint32(0); errors.Is(err, errcode.NoAvailableHandle) && try < a.MaxRetryAttempts; try++ {
		if !wait(ctx, spacePause*time.Duration(try+1)) {
			return ctx.Err()
		}
		source, targets, err = t.start(ctx)
	}
	if err != nil {
		return err
	}
	job, err := jobOf(source, targets)
	if err == nil && len(targets) > 0 {
		result := pump.Carry(ctx, job)
		if err = result.Err; err == nil {
			n.counters.bytesCarried.Add(job.Size * uint64(len(targets)))
		} else if mayStillHappen(&result) {
			return fmt.Errorf("%w, so it is left to the master to give it up", err)
		} else if result.Unsettled() {
			wait(ctx, settleTime)
		}
	}
	// A move to where the object is already has no target: its end drops the source.
	ctx, cancel := detached(ctx)
	defer cancel()
	if err != nil {
		return errors.Join(err, t.revoke(ctx))
	}
	return t.end(ctx)
}

// mayStillHappen reports whether a write may still be carried out by an owner that hangs. What it would write to is not given
// back then: the master gives such a copy or move up in time, and would give the memory to another value at once if
// it were revoked.
func mayStillHappen(r *transfer.Result) bool {
	return slices.ContainsFunc(r.Targets, func(t transfer.TargetResult) bool { return errors.Is(t.Err, segment.ErrUnsettled) })
}

// jobOf is what a plan means in places.
func jobOf(source object.ReplicaDescriptor, targets []object.ReplicaDescriptor) (*transfer.Job, error) {
	from, size, ok := place(&source)
	if !ok {
		return nil, errors.New("the source is not in memory")
	}
	job := &transfer.Job{Size: size, Sources: []transfer.Place{from}}
	for i := range targets {
		to, room, ok := place(&targets[i])
		if !ok || room < size {
			return nil, fmt.Errorf("a target has %d bytes of memory, the object has %d", room, size)
		}
		job.Targets = append(job.Targets, to)
	}
	return job, nil
}

// place is where a replica in memory lies.
func place(r *object.ReplicaDescriptor) (at transfer.Place, size uint64, ok bool) {
	if r.Location.Index != object.LocationMemory {
		return at, 0, false
	}
	b := &r.Location.Memory.Buffer
	return transfer.Place{Owner: b.Endpoint, Address: b.Address}, b.Size, true
}

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// allowance is a difference that a row of the differences from upstream, or a section of the
// comparison of the releases ("V14"), means.
type allowance struct {
	row, what string
	// match looks at the last operation of a history.
	match func(c *traceConfig, history []*done) bool
	// repair brings both sides into the same state again.
	repair func(ctx context.Context, d *done, ref, ours *side) error
}

var (
	oldForm = &allowance{
		row: "V14 4", what: "BatchReplicaClear as release 0.3.13 sends it is taken, for tenant default",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			return d.name == "BatchReplicaClear as 0.3.13" && d.want == "rpc error 4"
		},
		repair: func(ctx context.Context, d *done, ref, _ *side) error {
			want, err := d.instead.ask(ctx, ref)
			if err == nil && want != d.got {
				err = fmt.Errorf("%v: ours answers %s, the reference to the new form %s", d.op, d.got, want)
			}
			return err
		},
	}
	lostTarget = &allowance{
		row: "row 25", what: "the end of a move whose target is lost",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			return d.name == "MoveEnd" && d.want == "{}" && strings.HasPrefix(d.got, "REPLICA_IS_GONE")
		},
		repair: wipeBoth,
	}
	staleItem = &allowance{
		row: "row 26", what: "what is removed leaves the queue of promotions, in the original it stays and keeps the key out",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			return d.name == "PromotionObjectHeartbeat" && strings.HasPrefix(d.want, "[Promotion") && strings.HasPrefix(d.got, "[")
		},
		repair: wipeQueued,
	}
	staleOffload = &allowance{
		row: "row 26", what: "what is removed leaves the queues of offloads, in the original it stays, with its size, where it was reported by somebody else",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			if d.name != "OffloadObjectHeartbeat" || !strings.HasPrefix(d.want, "[Offload") || !strings.HasPrefix(d.got, "[") {
				return false
			}
			asked := make(map[string]bool)
			for _, m := range queuedItem.FindAllStringSubmatch(d.want, -1) {
				asked[m[1]+"/"+m[2]] = true
			}
			return !slices.ContainsFunc(queuedItem.FindAllStringSubmatch(d.got, -1), func(m []string) bool { return !asked[m[1]+"/"+m[2]] })
		},
		repair: wipeQueued,
	}
	keptOffload = &allowance{
		row: "row 3", what: "an upsert refused with -706 leaves the object's offload, the original has dropped it",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			if d.name != "OffloadObjectHeartbeat" || !strings.HasPrefix(d.got, "[Offload") || !strings.HasPrefix(d.want, "[") {
				return false
			}
			asked := make(map[string]bool)
			for _, m := range queuedItem.FindAllStringSubmatch(d.want, -1) {
				asked[m[1]+"/"+m[2]] = true
			}
			return !slices.ContainsFunc(queuedItem.FindAllStringSubmatch(d.got, -1), func(m []string) bool {
				return !asked[m[1]+"/"+m[2]] && !slices.ContainsFunc(history, func(h *done) bool {
					return strings.HasSuffix(h.name, "UpsertStart") && strings.Contains(h.want, "OBJECT_HAS_LEASE") && slices.Contains(h.touches, m[1]+"/"+m[2])
				})
			})
		},
		repair: wipeQueued,
	}
	lostMirror = &allowance{
		row: "row 37", what: "an offload ends with the disk it was for, in the original it keeps upserts out until the release timeout",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			const busy = "OBJECT_HAS_REPLICATION_TASK"
			free := func(got string) bool {
				return strings.HasPrefix(got, "[Replica") || strings.HasPrefix(got, "OBJECT_HAS_LEASE")
			}
			if !strings.HasSuffix(d.name, "UpsertStart") || !slices.ContainsFunc(history, func(h *done) bool { return h.name == "UnmountLocalDiskSegment" }) {
				return false
			}
			if !strings.HasPrefix(d.name, "Batch") {
				return strings.HasPrefix(d.want, busy) && free(d.got)
			}
			want, got := elements(d.want), elements(d.got)
			for i := range want {
				if len(got) != len(want) || want[i] != got[i] && !(strings.HasPrefix(want[i], busy) && free(got[i])) {
					return false
				}
			}
			return true
		},
		repair: wipeBoth,
	}
	keptWrite = &allowance{
		row: "row 3", what: "an upsert refused with -706 leaves the write that was under way, the original has dropped it",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			if !strings.HasSuffix(d.name, "End") && !strings.HasSuffix(d.name, "Revoke") && !strings.HasPrefix(d.name, "Remove") && d.name != "BatchRemove" {
				return false
			}
			return earlier(history, d, func(h *done) bool {
				return strings.HasSuffix(h.name, "UpsertStart") && strings.Contains(h.want, "OBJECT_HAS_LEASE")
			})
		},
		repair: wipeBoth,
	}
	promoted = &allowance{
		row: "row 26", what: "what is removed leaves the queue of promotions, so that the same key is being promoted when an upsert comes",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			return strings.HasSuffix(d.name, "UpsertStart") && strings.Contains(d.got, "OBJECT_HAS_REPLICATION_TASK") && !strings.HasPrefix(d.want, "OBJECT_HAS_REPLICATION_TASK") &&
				earlier(history, d, func(h *done) bool { return strings.HasPrefix(h.name, "Remove") || h.name == "BatchRemove" })
		},
		repair: wipeBoth,
	}
	besideDisk = &allowance{
		row: "row 27", what: "an upsert in place beside a replica on a client's disk, which stays unfinished in the original",
		match:  func(*traceConfig, []*done) bool { return false }, // see onDisk
		repair: wipeBoth,
	}
	diskOnly = &allowance{
		row: "row 28", what: "an upsert of the same size of an object on a disk only gets memory",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			if !onDisk(d) {
				return false
			}
			if !strings.HasPrefix(d.name, "Batch") {
				return !strings.Contains(d.got, "LocalDisk{")
			}
			want, got := elements(d.want), elements(d.got)
			for i := range want {
				alone := strings.Contains(want[i], "LocalDisk{") && !strings.Contains(want[i], "Memory{")
				if len(got) != len(want) || want[i] != got[i] && (!alone || strings.Contains(got[i], "LocalDisk{")) {
					return false
				}
			}
			return true
		},
		repair: wipeBoth,
	}
	refusedUpsert = &allowance{
		row: "row 3", what: "a refused upsert leaves what there was, the original has dropped it",
		match:  func(*traceConfig, []*done) bool { return false }, // see lost
		repair: wipeBoth,
	}
	bothCharged = &allowance{
		row: "row 3", what: "old and new value of an upsert of another size are both charged until it ends, the original has dropped the old one to make it fit",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			if len(history) < 2 || d.name != "GET /api/v1/tenant_quotas" || len(d.touches) == 0 {
				return false
			}
			upsert := history[len(history)-2]
			return strings.HasSuffix(upsert.name, "UpsertStart") && d.field() == "charged_bytes" && charged(d.got) > charged(d.want)
		},
		repair: wipeBoth,
	}
	preempted = &allowance{
		row: "row 33", what: "the value that a preempted upsert was to replace is not charged any more",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			if len(history) < 2 || d.name != "GET /api/v1/tenant_quotas" || len(d.touches) == 0 {
				return false
			}
			upsert := history[len(history)-2]
			return strings.HasSuffix(upsert.name, "UpsertStart") && d.field() == "charged_bytes" && charged(d.got) < charged(d.want)
		},
		repair: wipeBoth,
	}
	otherSize = &allowance{
		row: "row 36", what: "a promotion of a copy of another size than the object had is charged what it takes, in the original what the object had",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			return len(history) >= 2 && d.name == "GET /api/v1/tenant_quotas" && len(d.touches) == 1 &&
				history[len(history)-2].name == "PromotionAllocStart" && strings.HasPrefix(history[len(history)-2].got, "PromotionAlloc{") && d.field() == "charged_bytes"
		},
		repair: wipeBoth,
	}
	keptOut = &allowance{
		row: "row 26", what: "what is removed keeps the same key from being promoted in the original",
		match: func(_ *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			return d.name == "PromotionAllocStart" && strings.HasPrefix(d.want, "REPLICA_IS_NOT_READY") && strings.HasPrefix(d.got, "PromotionAlloc{")
		},
		repair: wipeBoth,
	}
	batchCharged = &allowance{
		row: "row 3", what: "keys of a batch of upserts find another part of the quota left than in the original, which has dropped old values",
		match: func(c *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			return c.policy != "" && d.name == "BatchUpsertStart" && onlyQuota(elements(d.want), elements(d.got))
		},
		repair: wipeBoth,
	}
	leasedUpsert = &allowance{
		row: "row 3b", what: "new buffers for a leased object fit when the old value's charge is left out",
		match: func(c *traceConfig, history []*done) bool {
			d := history[len(history)-1]
			return c.policy != "" && d.name == "UpsertStart" && strings.HasPrefix(d.want, "TENANT_QUOTA_EXCEEDED") && strings.HasPrefix(d.got, "[Replica")
		},
		repair: wipeBoth,
	}
)

// otherOrder is a difference in nothing but the order of an object's replicas.
var otherOrder = &allowance{
	row: "row 24", what: "replicas keep their order when one is lost, the original puts the last one into the gap",
	match: func(_ *traceConfig, history []*done) bool {
		d := history[len(history)-1]
		if strings.HasPrefix(d.name, "GET ") && d.name != "GET /query_key" && d.name != "GET /batch_query_keys" {
			return false
		}
		return sorted(d.want) == sorted(d.got)
	},
	repair: func(ctx context.Context, d *done, ref, ours *side) error {
		if onDisk(d) { // which is a difference of its own
			return wipeBoth(ctx, d, ref, ours)
		}
		return nil
	},
}

var replicaList = regexp.MustCompile(`\[Replica\{[^\[\]]*\]`)

// sorted is an answer with the replicas of each object in alphabetical order.
func sorted(answer string) string {
	if strings.HasPrefix(answer, "200 {") { // of the admin server
		parts := strings.FieldsFunc(answer, func(r rune) bool { return strings.ContainsRune("{}[]", r) })
		slices.Sort(parts)
		return strings.Join(parts, "; ")
	}
	return replicaList.ReplaceAllStringFunc(answer, func(list string) string {
		all := strings.Split(strings.Trim(list, "[]"), ", Replica{")
		all[0] = strings.TrimPrefix(all[0], "Replica{")
		slices.Sort(all)
		return strings.Join(all, "; ")
	})
}

// lostWrite is a write that has lost its memory with the segment, beside a replica on a disk.
var lostWrite = &allowance{
	row: "row 29", what: "a write whose memory is lost is over, in the original it stays unfinished and its object can't be pinned",
	match: func(_ *traceConfig, history []*done) bool {
		d := history[len(history)-1]
		return strings.HasPrefix(d.name, "POST /api/v1/soft_") && strings.Contains(d.want, `"error_code":-703`) &&
			strings.ReplaceAll(d.want, `"error_code":-703`, `"error_code":0`) == strings.ReplaceAll(d.got, `"error_code":-703`, `"error_code":0`)
	},
	repair: wipeBoth,
}

// earlier reports whether an operation before d that touched one of its objects matches.
func earlier(history []*done, d *done, match func(*done) bool) bool {
	return slices.ContainsFunc(history[:len(history)-1], func(h *done) bool {
		return match(h) && slices.ContainsFunc(h.touches, func(o string) bool { return slices.Contains(d.touches, o) })
	})
}

// wipeQueued makes an end of the objects that either side has handed out.
func wipeQueued(ctx context.Context, d *done, ref, ours *side) error {
	named := *d.op
	for _, m := range queuedItem.FindAllStringSubmatch(d.want+d.got, -1) {
		named.touches = append(named.touches, m[1]+"/"+m[2])
	}
	return wipeBoth(ctx, &done{op: &named, want: d.want, got: d.got}, ref, ours)
}

// passedOver stands for what the caller doesn't want to hear of.
var passedOver = &allowance{row: "-past", repair: wipeBoth}

var allowances = []*allowance{oldForm, lostTarget, staleItem, staleOffload, keptOffload, keptWrite, promoted, lostMirror, besideDisk, diskOnly, lostWrite, refusedUpsert, bothCharged, preempted, otherSize, keptOut, batchCharged, leasedUpsert, otherOrder}

// elements are the parts of a list that is an answer.
func elements(answer string) []string {
	var parts []string
	depth, from := 0, 1
	for i, r := range answer {
		switch r {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 1 {
				parts = append(parts, strings.TrimSpace(answer[from:i]))
				from = i + 1
			}
		}
	}
	return append(parts, strings.TrimSpace(strings.TrimSuffix(answer[min(from, len(answer)):], "]")))
}

// onlyQuota reports whether all that two lists differ in is which element a quota refused.
func onlyQuota(want, got []string) bool {
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		refused := strings.HasPrefix(want[i], "TENANT_QUOTA_EXCEEDED")
		if want[i] != got[i] && refused == strings.HasPrefix(got[i], "TENANT_QUOTA_EXCEEDED") {
			return false
		}
	}
	return true
}

func (t *tracer) allow(c *traceConfig, history []*done) *allowance {
	for _, a := range allowances {
		if a.match(c, history) {
			return a
		}
	}
	return nil
}

// charged reads the charge out of the quota of one tenant.
func charged(body string) (n uint64) {
	if i := strings.Index(body, `"charged_bytes":`); i >= 0 {
		_, _ = fmt.Sscan(strings.FieldsFunc(body[i+len(`"charged_bytes":`):], func(r rune) bool { return r == ',' })[0], &n)
	}
	return n
}

// lost reports whether the reference no longer has an object that a refused upsert was about,
// and ours has it.
func lost(ctx context.Context, d *done, ref, ours *side) (bool, error) {
	if !strings.HasSuffix(d.name, "UpsertStart") || !strings.Contains(d.want, "(-") {
		return false, nil
	}
	for _, scoped := range d.touches {
		want, err := ref.state(ctx, scoped)
		if err != nil {
			return false, err
		}
		got, err := ours.state(ctx, scoped)
		if err != nil || want == errcode.ObjectNotFound && got != want {
			return err == nil, err
		}
	}
	return false, nil
}

// queuedItem is a tenant and a key in a queue of promotions.
var queuedItem = regexp.MustCompile(`TenantID:"([^"]*)" Key:"([^"]*)"`)

// onDisk reports whether the original took a replica on a disk for one that an upsert writes.
func onDisk(d *done) bool {
	return strings.HasSuffix(d.name, "UpsertStart") && strings.Contains(d.want, "LocalDisk{")
}

// state is the code of an admin read.
func (s *side) state(ctx context.Context, scoped string) (errcode.Code, error) {
	tenant, key := cut(scoped)
	var a errcode.Result[object.ReplicaList]
	err := rpc.Invoke(ctx, s.conn, wire.GetReplicaListForAdmin, &wire.GetReplicaListForAdminRequest{Key: key, TenantID: tenant}, &a)
	return a.Code, err
}

// errApart is returned when both sides can't be brought into the same state.
var errApart = errors.New("the sides stay apart")

// wipeBoth makes an end of the objects that an operation was about, on both sides.
func wipeBoth(ctx context.Context, d *done, ref, ours *side) error {
	if len(d.touches) == 0 && d.want[:1] != d.got[:1] {
		return fmt.Errorf("%w: %v is about everything", errApart, d.op)
	}
	for _, scoped := range d.touches {
		for _, s := range []*side{ref, ours} {
			if err := s.wipe(ctx, scoped); err != nil {
				return fmt.Errorf("after %v: %w", d.op, err)
			}
		}
	}
	return nil
}

// wipe removes an object whatever is under way with it.
func (s *side) wipe(ctx context.Context, scoped string) error {
	tenant, key := cut(scoped)
	var a errcode.Result[errcode.Void]
	var failed []error
	for i := range strangers {
		id := segment.UUID{First: uint64(i + 1), Second: uint64(100 + i)}
		failed = append(failed,
			rpc.Invoke(ctx, s.conn, wire.CopyRevoke, &wire.CopyRevokeRequest{ClientID: id, Key: key, TenantID: tenant}, &a),
			rpc.Invoke(ctx, s.conn, wire.MoveRevoke, &wire.MoveRevokeRequest{ClientID: id, Key: key, TenantID: tenant}, &a),
			rpc.Invoke(ctx, s.conn, wire.EvictDiskReplica, &wire.EvictDiskReplicaRequest{ClientID: id, Key: key, TenantID: tenant, ReplicaType: object.ReplicaLocalDisk}, &a),
			rpc.Invoke(ctx, s.conn, wire.UpsertRevoke, &wire.UpsertRevokeRequest{ClientID: id, Key: key, ReplicaType: object.ReplicaAll, TenantID: tenant}, &a),
		)
	}
	failed = append(failed, rpc.Invoke(ctx, s.conn, wire.Remove, &wire.RemoveRequest{Key: key, Force: true, TenantID: tenant}, &a))
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if code, err := s.state(ctx, scoped); err != nil || code != errcode.ObjectNotFound && code != errcode.InvalidParams {
		return fmt.Errorf("%w: %s keeps %s (%v) after everything was tried to remove it: %v, %w", errApart, s.name, scoped, code, a.Code, err)
	}
	return nil
}

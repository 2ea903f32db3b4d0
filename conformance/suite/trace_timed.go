package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// timed is a list of operations at given moments, at least two seconds away from every moment at
// which something is due.
type timed struct {
	name  string
	flags []string // behind those of every trace
	// policy is the tenants' quotas; empty without tenants.
	policy string
	script func(p *plot)
}

// plot is a script being written.
type plot struct {
	*world
	steps []timedStep
	now   time.Duration
}

type timedStep struct {
	at time.Duration
	*op
}

const timedPolicy = "version: 1\ntenants:\n  - name: default\n    quota: 1GB\n"

// timeouts are short ones for everything that is given up when nobody ends it.
var timeouts = []string{"--put_start_discard_timeout_sec=4", "--put_start_release_timeout_sec=10"}

var timedCases = []timed{
	{"writes", timeouts, timedPolicy, (*plot).writes},
	{"copies", timeouts, timedPolicy, (*plot).copies},
	{"tasks", []string{"--pending_task_timeout_sec=3", "--processing_task_timeout_sec=3", "--max_total_finished_tasks=2"}, "", (*plot).aging},
	{"offload", slices.Concat(timeouts, diskFlags), timedPolicy, (*plot).markers},
	{"promotion", slices.Concat(timeouts, diskFlags), timedPolicy, (*plot).promotions},
	{"retry", diskFlags, timedPolicy, (*plot).retries},
	{"graceful", nil, timedPolicy, (*plot).graceful},
	{"liveness", slices.Concat(diskFlags, []string{"--client_active_ttl_sec=4", "--client_suspicion_ttl_sec=8"}), timedPolicy, (*plot).liveness},
	{"leases", []string{"--default_kv_lease_ttl=3000"}, "", (*plot).leaseEnds},
	{"drain", nil, timedPolicy, (*plot).drain},
	{"dynamic", []string{"--dynamic_replication_mode=enforce", "--dynamic_replication_admission_qps_threshold=0.3"}, "", (*plot).replication},
}

// runTimed runs all of them side by side.
func (t *tracer) runTimed(ctx context.Context, only string) error {
	start := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed []string
	total := 0
	for _, c := range timedCases {
		if only != "" && !slices.Contains(strings.Split(only, ","), c.name) {
			continue
		}
		wg.Go(func() {
			history, err := t.playTimed(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			total += len(history)
			bad := slices.ContainsFunc(history, (*done).differ)
			if err == nil && !bad {
				fmt.Printf("  %-10s %3d answers\n", c.name, len(history))
				return
			}
			failed = append(failed, c.name)
			fmt.Printf("  %-10s differs: %v\n", c.name, err)
			for _, d := range history {
				if t.verbose || d.differ() {
					show(d)
				}
			}
		})
	}
	wg.Wait()
	fmt.Printf("%d answers of rules about time in %.0f s\n", total, time.Since(start).Seconds())
	if len(failed) > 0 {
		slices.Sort(failed)
		return fmt.Errorf("rules about time differ: %s", strings.Join(failed, ", "))
	}
	return nil
}

func (t *tracer) playTimed(ctx context.Context, c timed) ([]*done, error) {
	config := &traceConfig{
		name: c.name, flags: slices.Concat([]string{"--default_kv_lease_ttl=1"}, still, c.flags), ours: []string{"--tenant_quota_exceeded=reject"}, policy: c.policy,
		tenants: []string{"default"}, keys: []string{"k"}, segments: 5, segmentSize: gib, prepare: (*world).mountAll,
	}
	if c.policy == "" {
		config.ours = nil
	}
	ref, err := t.e.bring(ctx, "reference", t.reference, config)
	if err != nil {
		return nil, err
	}
	defer ref.end()
	ours, err := t.e.bring(ctx, "ours", t.ours, config)
	if err != nil {
		return nil, err
	}
	defer ours.end()
	p := &plot{world: newWorld(config, 1, 0)}
	for _, o := range p.ops {
		p.steps = append(p.steps, timedStep{0, o})
	}
	c.script(p)
	var history []*done
	start := time.Now()
	for _, s := range p.steps {
		select {
		case <-time.After(time.Until(start.Add(s.at))):
		case <-ctx.Done():
			return history, ctx.Err()
		}
		d, err := s.both(ctx, ref, ours)
		d.args = fmt.Sprintf("at %.1f s: %s", s.at.Seconds(), d.args)
		history = append(history, d)
		if err != nil {
			return history, fmt.Errorf("%v: %w: %s", d.op, err, t.ends(ref, ours))
		}
	}
	return history, nil
}

// at sets the moment of the next operations, in seconds from the start.
func (p *plot) at(seconds float64) { p.now = time.Duration(seconds * float64(time.Second)) }

func (p *plot) do(o *op) {
	o.n = len(p.steps)
	p.steps = append(p.steps, timedStep{p.now, o})
}

const defaultTenant = wire.DefaultTenant

// place is where the clients' segments are: client 0 has 0 and 1, client 1 has 2 and 3, client 2 has 4.
func (p *plot) place(i int) string { return p.segs[i].info.Name }

func (p *plot) config(places ...int) object.ReplicateConfig {
	c := object.ReplicateConfig{ReplicaNum: uint64(len(places))}
	for _, i := range places {
		c.PreferredSegments = append(c.PreferredSegments, p.place(i))
	}
	for i := range p.segs { // so that no master has a choice if one of them is not there
		if !slices.Contains(places, i) {
			c.PreferredSegments = append(c.PreferredSegments, p.place(i))
		}
	}
	return c
}

func (p *plot) start(client int, key string, size uint64, places ...int) {
	p.do(call(wire.PutStart, wire.PutStartRequest{ClientID: p.clients[client], Key: key, SliceLength: size, Config: p.config(places...), TenantID: defaultTenant}))
}

func (p *plot) finishPut(client int, key string) {
	p.do(call(wire.PutEnd, wire.PutEndRequest{ClientID: p.clients[client], ObjectMeta: object.Meta{Key: key}, ReplicaType: object.ReplicaAll, TenantID: defaultTenant}))
}

func (p *plot) put(client int, key string, size uint64, places ...int) {
	p.start(client, key, size, places...)
	p.finishPut(client, key)
}

func (p *plot) upsert(client int, key string, size uint64, places ...int) {
	p.do(call(wire.UpsertStart, wire.UpsertStartRequest{ClientID: p.clients[client], Key: key, SliceLength: size, Config: p.config(places...), TenantID: defaultTenant}))
}

func (p *plot) look(keys ...string) {
	p.do(call(wire.BatchGetReplicaListForAdmin, wire.BatchGetReplicaListForAdminRequest{Keys: keys, TenantID: defaultTenant}))
}

func (p *plot) get(key string) {
	p.do(call(wire.GetReplicaList, wire.GetReplicaListRequest{Key: key, TenantID: defaultTenant}))
}

func (p *plot) exist(key string) {
	p.do(call(wire.ExistKey, wire.ExistKeyRequest{Key: key, TenantID: defaultTenant}))
}

func (p *plot) remove(key string) {
	p.do(call(wire.Remove, wire.RemoveRequest{Key: key, TenantID: defaultTenant}))
}

func (p *plot) quotas() { p.do(httpOp("GET", "/api/v1/tenant_quotas", "")) }

func (p *plot) segments() { p.do(httpOp("GET", "/get_segments_detail", "")) }

func (p *plot) beat(client int) { p.do(call(wire.Ping, wire.PingRequest{ClientID: p.clients[client]})) }

func (p *plot) copyFrom(client int, key string, from, to int) {
	p.do(call(wire.CopyStart, wire.CopyStartRequest{ClientID: p.clients[client], Key: key, TenantID: defaultTenant, SrcSegment: p.place(from), TgtSegments: []string{p.place(to)}}))
}

func (p *plot) copied(client int, key string) {
	p.do(call(wire.CopyEnd, wire.CopyEndRequest{ClientID: p.clients[client], Key: key, TenantID: defaultTenant}))
}

func (p *plot) moveFrom(client int, key string, from, to int) {
	p.do(call(wire.MoveStart, wire.MoveStartRequest{ClientID: p.clients[client], Key: key, TenantID: defaultTenant, SrcSegment: p.place(from), TgtSegment: p.place(to)}))
}

func (p *plot) moved(client int, key string) {
	p.do(call(wire.MoveEnd, wire.MoveEndRequest{ClientID: p.clients[client], Key: key, TenantID: defaultTenant}))
}

// offloadBeat takes what is to be written to a client's disk.
func (p *plot) offloadBeat(client int) {
	p.do(call(wire.OffloadObjectHeartbeat, wire.OffloadObjectHeartbeatRequest{ClientID: p.clients[client], EnableOffloading: true}))
}

func (p *plot) onDisk(client int, key string, size int64) {
	p.do(call(wire.NotifyOffloadSuccess, wire.NotifyOffloadSuccessRequest{
		ClientID: p.clients[client], Tasks: []wire.OffloadTaskItem{{TenantID: defaultTenant, Key: key, Size: size}},
		Metadatas: []wire.StorageObjectMetadata{{BucketID: 1, KeySize: int64(len(key)), DataSize: size, TransportEndpoint: "disk:1"}},
	}))
}

func (p *plot) dropFrom(client int, key string, place int) {
	p.do(call(wire.BatchReplicaClear, wire.BatchReplicaClearRequest{ObjectKeys: []string{key}, ClientID: p.clients[client], SegmentName: p.place(place), TenantID: defaultTenant}))
}

func (p *plot) promotionBeat(client int) {
	p.do(call(wire.PromotionObjectHeartbeat, wire.PromotionObjectHeartbeatRequest{ClientID: p.clients[client]}))
}

func (p *plot) promotionAlloc(client int, key string, size uint64) {
	p.do(call(wire.PromotionAllocStart, wire.PromotionAllocStartRequest{ClientID: p.clients[client], Key: key, TenantID: defaultTenant, Size: size, PreferredSegments: []string{p.place(0)}}))
}

// diskOnly leaves an object on the disk of a client.
func (p *plot) diskOnly(client int, key string, size uint64) {
	p.put(0, key, size, 0)
	p.onDisk(client, key, int64(size))
	p.dropFrom(0, key, 0)
}

package core_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// running is a clock that runs and randomness that needs no lock, as in a real master.
type running struct{ start time.Time }

func (r running) Now() int64            { return int64(time.Since(r.start)) + 1e9 }
func (running) Uint64N(n uint64) uint64 { return rand.Uint64N(n) }

// benchMaster has memory for everything, and the given number of objects of 64-byte keys.
func benchMaster(b *testing.B, objects int, change ...func(*core.Config)) *core.Master {
	b.Helper()
	cfg := core.Default()
	for _, f := range change {
		f(&cfg)
	}
	r := running{time.Now()}
	m, err := core.New(cfg, core.Deps{Clock: r, Rand: r, Log: hclog.NewNullLogger()})
	if err != nil {
		b.Fatal(err)
	}
	for i := range uint64(16) {
		info := segment.Info{ID: mastertest.ID(i + 1), Name: fmt.Sprint("seg", i), Base: 1 << 40, Size: 64 << 30, Endpoint: fmt.Sprint("seg", i), Protocol: "tcp"}
		if code := m.MountSegment(info, mastertest.ID(i+1)); code != errcode.OK {
			b.Fatal(code)
		}
	}
	keys := benchKeys(0, objects)
	for len(keys) > 0 {
		n := min(128, len(keys))
		benchPut(b, m, tenant.Default, keys[:n])
		keys = keys[n:]
	}
	return m
}

func benchKeys(from, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%064d", from+i)
	}
	return keys
}

func benchPut(b *testing.B, m *core.Master, tenantName string, keys []string) {
	sizes := make([]uint64, len(keys))
	metas := make([]object.Meta, len(keys))
	for i := range keys {
		sizes[i], metas[i].Key = 4096, keys[i]
	}
	cfg := object.ReplicateConfig{ReplicaNum: 1}
	for _, r := range m.BatchPutStart(mastertest.ID(1), tenantName, keys, sizes, &cfg, nil) {
		if r.Code != errcode.OK {
			b.Fatal(r.Code)
		}
	}
	m.BatchPutEnd(mastertest.ID(1), tenantName, metas, object.ReplicaAll, nil)
}

// pick draws n keys.
func pick(r *rand.Rand, keys, out []string) []string {
	for i := range out {
		out[i] = keys[r.IntN(len(keys))]
	}
	return out
}

const benchObjects = 100_000

func BenchmarkExist128(b *testing.B) {
	m := benchMaster(b, benchObjects)
	keys := benchKeys(0, benchObjects)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		r, batch := rand.New(rand.NewPCG(rand.Uint64(), 0)), make([]string, 128)
		var out []errcode.Result[bool]
		for pb.Next() {
			out = m.BatchExistKey(tenant.Default, pick(r, keys, batch), out[:0])
		}
	})
}

func BenchmarkGet128(b *testing.B) {
	m := benchMaster(b, benchObjects)
	keys := benchKeys(0, benchObjects)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		r, batch := rand.New(rand.NewPCG(rand.Uint64(), 0)), make([]string, 128)
		var out []errcode.Result[object.ReplicaList]
		for pb.Next() {
			out = m.BatchGetReplicaList(tenant.Default, pick(r, keys, batch), out)
		}
	})
}

// BenchmarkPutRemove128 puts 128 objects and removes them, so that nothing grows.
func BenchmarkPutRemove128(b *testing.B) {
	m := benchMaster(b, benchObjects)
	var serial atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		keys := benchKeys(1_000_000+int(serial.Add(1))*1000, 128)
		sizes, metas := make([]uint64, 128), make([]object.Meta, 128)
		for i := range keys {
			sizes[i], metas[i].Key = 4096, keys[i]
		}
		cfg := object.ReplicateConfig{ReplicaNum: 1}
		var started []errcode.Result[[]object.ReplicaDescriptor]
		var ended, removed []errcode.Result[errcode.Void]
		for pb.Next() {
			started = m.BatchPutStart(mastertest.ID(1), tenant.Default, keys, sizes, &cfg, started)
			ended = m.BatchPutEnd(mastertest.ID(1), tenant.Default, metas, object.ReplicaAll, ended[:0])
			removed = m.BatchRemove(tenant.Default, keys, false, removed[:0])
			if removed[0].Code != errcode.OK {
				b.Error(removed[0].Code)
			}
		}
	})
}

// BenchmarkPutAtQuota128 puts 128 new objects into a tenant at its quota: each evicts the
// oldest.
func BenchmarkPutAtQuota128(b *testing.B) {
	m := benchMaster(b, 0, mastertest.Strict)
	m.ApplyPolicies([]tenant.Policy{{Name: tenant.Default, Quota: 4096 * benchObjects}})
	b.ReportAllocs()
	n := 0
	put := func() {
		benchPut(b, m, tenant.Default, benchKeys(n, 128))
		n += 128
	}
	for n < benchObjects {
		put()
	}
	b.ResetTimer()
	for b.Loop() {
		put()
	}
}

// BenchmarkControl128 is what independent goroutines gain from a second core: it reads memory
// as a batch does, from one table that nobody writes, and shares nothing else.
func BenchmarkControl128(b *testing.B) {
	keys := benchKeys(0, benchObjects)
	index := make(map[string]int, len(keys))
	for i, key := range keys {
		index[key] = i
	}
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		r := rand.New(rand.NewPCG(rand.Uint64(), 0))
		batch, sum := make([]string, 128), 0
		for pb.Next() {
			for _, key := range pick(r, keys, batch) {
				sum += index[key]
			}
		}
		if sum < 0 {
			b.Error(sum)
		}
	})
}

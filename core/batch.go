package core

import (
	"slices"
	"sync"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// sorter is the scratch space for grouping a batch by shard.
type sorter struct {
	hashes []object.Hash
	starts []int32 // where each shard's keys begin in order
	order  []int32 // indexes of keys, by shard, in batch order inside a shard
}

var sorters = sync.Pool{New: func() any { return new(sorter) }}

// byShard calls f once for each shard that has keys of the batch, with their indexes in batch
// order, so that each shard's lock is taken once. hashes are those of all keys.
func byShard(space *object.Space, keys []string, f func(sh *object.Shard, indexes []int32, hashes []object.Hash)) {
	groupByShard(space, len(keys), func(i int) string { return keys[i] }, f)
}

func groupByShard(space *object.Space, keys int, key func(i int) string, f func(sh *object.Shard, indexes []int32, hashes []object.Hash)) {
	shards := space.Shards()
	s := sorters.Get().(*sorter)
	defer sorters.Put(s)
	s.hashes = resize(s.hashes, keys)
	s.order = resize(s.order, keys)
	s.starts = resize(s.starts, len(shards)+1)
	clear(s.starts)
	for i := range keys {
		h := space.Hash(key(i))
		s.hashes[i] = h
		s.starts[space.ShardIndex(h)+1]++
	}
	space.Warm(s.hashes)
	for i := range shards {
		s.starts[i+1] += s.starts[i]
	}
	for i, h := range s.hashes {
		n := space.ShardIndex(h)
		s.order[s.starts[n]] = int32(i)
		s.starts[n]++
	}
	if keys == 0 {
		return
	}
	// starts[n] is now where shard n ends. The first key says where to begin: batches that all began
	// with the first shard would wait for each other at every one.
	first := space.ShardIndex(s.hashes[0])
	for i := range shards {
		n, begin := (first+i)&(len(shards)-1), int32(0)
		if n > 0 {
			begin = s.starts[n-1]
		}
		if end := s.starts[n]; end > begin {
			f(&shards[n], s.order[begin:end], s.hashes)
		}
	}
}

func resize[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	return s[:n]
}

// resized returns s with length n; elements keep what they hold, also beyond the old length.
func resized[E any](s []E, n int) []E {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s[:cap(s)], make([]E, n-cap(s))...)
}

// pieceKeys is after how many keys a long batch of writes makes room for what it has taken, and lets
// others have its shards and the processor.
const pieceKeys = 128

// inShards calls f for each key, those of a piece by shard and each shard's in their order, with the
// shard locked for writing: its lock is taken once in a piece.
func (m *Master) inShards(space *object.Space, keys int, key func(i int) string, f func(sh *object.Shard, h object.Hash, i int)) {
	for from := 0; from < keys; from += pieceKeys {
		if from >= 2*pieceKeys {
			m.yield()
		}
		groupByShard(space, min(pieceKeys, keys-from), func(i int) string { return key(from + i) }, func(sh *object.Shard, indexes []int32, hashes []object.Hash) {
			sh.Lock()
			defer sh.Unlock()
			for _, i := range indexes {
				f(sh, hashes[i], from+int(i))
			}
		})
	}
}

// eachKey is inShards for a tenant as request found it, that appends an answer for each key to out.
func (m *Master) eachKey(k *keeper, code errcode.Code, keys int, key func(i int) string, out []errcode.Result[errcode.Void], f func(sh *object.Shard, h object.Hash, i int) errcode.Code) []errcode.Result[errcode.Void] {
	first := len(out)
	out = slices.Grow(out, keys)[:first+keys]
	results := out[first:]
	if k == nil {
		if code == errcode.OK {
			code = errcode.ObjectNotFound
		}
		for i := range results {
			results[i].Code = code
		}
		return out
	}
	m.inShards(k.space, keys, key, func(sh *object.Shard, h object.Hash, i int) { results[i].Code = f(sh, h, i) })
	return out
}

// BatchPutStart is PutStart for each key with its size, in order; each stands for itself. It
// returns out with exactly one element per key, reusing what it holds. Where the numbers of
// keys, sizes and per-key fields differ, every key is answered InvalidParams.
func (m *Master) BatchPutStart(client segment.UUID, tenantName string, keys []string, sizes []uint64, config *object.ReplicateConfig, out []errcode.Result[[]object.ReplicaDescriptor]) []errcode.Result[[]object.ReplicaDescriptor] {
	return m.startBatch(client, tenantName, keys, sizes, config, out, m.put, true)
}

// BatchUpsertStart is UpsertStart for each key, otherwise like BatchPutStart.
func (m *Master) BatchUpsertStart(client segment.UUID, tenantName string, keys []string, sizes []uint64, config *object.ReplicateConfig, out []errcode.Result[[]object.ReplicaDescriptor]) []errcode.Result[[]object.ReplicaDescriptor] {
	return m.startBatch(client, tenantName, keys, sizes, config, out, m.upsert, false)
}

func (m *Master) startBatch(client segment.UUID, tenantName string, keys []string, sizes []uint64, config *object.ReplicateConfig, out []errcode.Result[[]object.ReplicaDescriptor], start starter, together bool) []errcode.Result[[]object.ReplicaDescriptor] {
	out = resized(out, len(keys))
	refuse := errcode.OK
	if len(keys) != len(sizes) || !perKey(config, len(keys)) {
		refuse = errcode.InvalidParams
	} else {
		refuse = m.named(tenantName)
	}
	if refuse != errcode.OK {
		for i := range out {
			out[i].Code = refuse
		}
		return out
	}
	m.clients.RememberHost(client, config.HostID)
	w := newWrite(client, config)
	defer w.recycle()
	w.reserve(m, len(keys))
	for from := 0; from < len(keys); from += pieceKeys {
		end := min(from+pieceKeys, len(keys))
		if from >= 2*pieceKeys {
			m.yield()
		}
		if !together || !m.startTogether(tenantName, w, keys, sizes, from, end, out) {
			for i := from; i < end; i++ {
				m.startNext(tenantName, w, keys[i], sizes[i], i, &out[i], start)
			}
		}
		m.finish(w)
	}
	return out
}

// startNext starts one key of a batch. The rest of a batch that wants it follows the first object
// that was placed to its node.
func (m *Master) startNext(tenantName string, w *write, key string, size uint64, i int, out *errcode.Result[[]object.ReplicaDescriptor], start starter) {
	out.Value, out.Code = m.startKey(tenantName, w, key, size, i, out.Value[:0], start)
	if w.config.PreferAllocInSameNode && !w.followed && !w.inPlace && out.Code == errcode.OK && len(out.Value) > 0 {
		last := out.Value[len(out.Value)-1]
		sticky := *w.config
		sticky.PreferredSegment = last.Location.Memory.Buffer.Endpoint
		w.config, w.followed = &sticky, true
	}
}

// BatchPutEnd ends a write for each key, in the order of metas, appended to out.
func (m *Master) BatchPutEnd(client segment.UUID, tenantName string, metas []object.Meta, kind object.ReplicaType, out []errcode.Result[errcode.Void]) []errcode.Result[errcode.Void] {
	k, code := m.request(tenantName)
	now := m.clock.Now()
	return m.eachKey(k, code, len(metas), func(i int) string { return metas[i].Key }, out, func(sh *object.Shard, h object.Hash, i int) errcode.Code {
		// A nanosecond apart, so that the order of eviction is that of the batch.
		return m.endKey(k, sh, h, client, &metas[i], kind, now+int64(i))
	})
}

// BatchPutRevoke revokes a write for each key, in the order of keys, appended to out.
func (m *Master) BatchPutRevoke(client segment.UUID, tenantName string, keys []string, kind object.ReplicaType, out []errcode.Result[errcode.Void]) []errcode.Result[errcode.Void] {
	k, code := m.request(tenantName)
	return m.eachKey(k, code, len(keys), func(i int) string { return keys[i] }, out, func(sh *object.Shard, h object.Hash, i int) errcode.Code {
		return m.revokeKey(k, sh, h, client, keys[i], kind)
	})
}

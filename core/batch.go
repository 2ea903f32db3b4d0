package core

import (
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
	shards := space.Shards()
	s := sorters.Get().(*sorter)
	defer sorters.Put(s)
	s.hashes = resize(s.hashes, len(keys))
	s.order = resize(s.order, len(keys))
	s.starts = resize(s.starts, len(shards)+1)
	clear(s.starts)
	for i, key := range keys {
		h := space.Hash(key)
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
	begin := int32(0) // starts[n] is now where shard n ends
	for n := range shards {
		if end := s.starts[n]; end > begin {
			f(&shards[n], s.order[begin:end], s.hashes)
			begin = end
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

// pieceKeys is after how many keys a long batch makes room for what it has taken, and lets others
// have the processor.
const pieceKeys = 128

// BatchPutStart is PutStart for each key with its size, in order; each stands for itself. It
// returns out with exactly one element per key, reusing what it holds. Where the numbers of
// keys, sizes and per-key fields differ, every key is answered InvalidParams.
func (m *Master) BatchPutStart(client segment.UUID, tenantName string, keys []string, sizes []uint64, config *object.ReplicateConfig, out []errcode.Result[[]object.ReplicaDescriptor]) []errcode.Result[[]object.ReplicaDescriptor] {
	return m.startBatch(client, tenantName, keys, sizes, config, out, m.put)
}

// BatchUpsertStart is UpsertStart for each key, otherwise like BatchPutStart.
func (m *Master) BatchUpsertStart(client segment.UUID, tenantName string, keys []string, sizes []uint64, config *object.ReplicateConfig, out []errcode.Result[[]object.ReplicaDescriptor]) []errcode.Result[[]object.ReplicaDescriptor] {
	return m.startBatch(client, tenantName, keys, sizes, config, out, m.upsert)
}

func (m *Master) startBatch(client segment.UUID, tenantName string, keys []string, sizes []uint64, config *object.ReplicateConfig, out []errcode.Result[[]object.ReplicaDescriptor], start starter) []errcode.Result[[]object.ReplicaDescriptor] {
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
	w.ids = uint64(len(keys))
	w.nextID = m.replicaID.Add(w.ids) - w.ids + 1
	sticky := *config
	for i, key := range keys {
		out[i].Value, out[i].Code = m.startKey(tenantName, w, key, sizes[i], i, out[i].Value[:0], start)
		if config.PreferAllocInSameNode && w.config == config && out[i].Code == errcode.OK && len(out[i].Value) > 0 {
			// The rest of the batch follows the first object to its node.
			last := out[i].Value[len(out[i].Value)-1]
			sticky.PreferredSegment = last.Location.Memory.Buffer.Endpoint
			w.config = &sticky
		}
		if i%pieceKeys == pieceKeys-1 {
			m.finish(w)
			if i >= 2*pieceKeys {
				m.yield()
			}
		}
	}
	m.finish(w)
	return out
}

// BatchPutEnd ends a write for each key, in the order of metas, appended to out.
func (m *Master) BatchPutEnd(client segment.UUID, tenantName string, metas []object.Meta, kind object.ReplicaType, out []errcode.Result[errcode.Void]) []errcode.Result[errcode.Void] {
	k, code := m.request(tenantName)
	now := m.clock.Now()
	for i := range metas {
		c := code
		if c == errcode.OK {
			// A nanosecond apart, so that the order of eviction is that of the batch.
			c = m.endKey(k, client, &metas[i], kind, now+int64(i))
		}
		out = append(out, errcode.Result[errcode.Void]{Code: c})
	}
	return out
}

// BatchPutRevoke revokes a write for each key, in the order of keys, appended to out.
func (m *Master) BatchPutRevoke(client segment.UUID, tenantName string, keys []string, kind object.ReplicaType, out []errcode.Result[errcode.Void]) []errcode.Result[errcode.Void] {
	k, code := m.request(tenantName)
	for _, key := range keys {
		c := code
		if c == errcode.OK {
			c = m.revokeKey(k, client, key, kind)
		}
		out = append(out, errcode.Result[errcode.Void]{Code: c})
	}
	return out
}

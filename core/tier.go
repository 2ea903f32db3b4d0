package core

import (
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// tierLost is told of a promotion or offload whose object has gone.
func (m *Master) tierLost(*keeper, *object.Shard, *object.Object, *object.Work) {}

// tierExpired is told of a promotion or offload that nobody has ended in time.
func (m *Master) tierExpired(*keeper, *object.Shard, *object.Object, *object.Work) {}

// promoteOnHit considers bringing an object that was read back to memory. It is called without
// locks, if promotion is on.
func (m *Master) promoteOnHit(*keeper, string, *object.ReplicaList) {}

// written is told that a write has ended whose object can be read now. The shard is locked for
// writing.
func (m *Master) written(*keeper, *object.Shard, *object.Object, object.ReplicaType) {}

// tierSilent, tierBack and tierGone are told what becomes of a client that may have a disk. They
// are called without locks of shards.
func (m *Master) tierSilent(segment.UUID) {}
func (m *Master) tierBack(segment.UUID)   {}
func (m *Master) tierGone([]segment.UUID) {}

// tierCleared is told that everything, or with a keeper everything of its tenant, has been removed
// by RemoveAll. It is called without locks.
func (m *Master) tierCleared(*keeper) {}

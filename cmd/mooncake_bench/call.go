package main

import (
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// dialect is how requests are written.
type dialect struct {
	release wire.Release
	literal bool // type literals in every body, as released clients write them
}

// arguments are what any call of the generator can be about. Calls take what they need.
type arguments struct {
	client segment.UUID
	tenant string
	keys   []string
	size   uint64
}

// call is one RPC that the generator makes, without its Go types.
type call struct {
	name   string
	id     uint32
	hash   uint32 // of the result
	prefix []byte // literal of the result and its terminator
	shape  shape
	batch  bool // takes any number of keys and answers with a list
	// encode appends the body of a request.
	encode func(dst []byte, d dialect, a *arguments) []byte
}

// calling makes a call of a row of the protocol.
func calling[Req, Resp any](r *wire.RPC[Req, Resp], s shape, fill func(a *arguments) Req) *call {
	row := r.Row()
	return &call{
		name:   row.Name,
		id:     row.ID,
		hash:   row.ResponseHash,
		prefix: append(append([]byte{}, row.ResponseLiteral...), 0),
		shape:  s,
		batch:  r.Batch(),
		encode: func(dst []byte, d dialect, a *arguments) []byte {
			req := fill(a)
			return r.AppendRequest(dst, &req, d.release, d.literal)
		},
	}
}

// one returns the settings of a write with one replica.
func one() object.ReplicateConfig { return object.ReplicateConfig{ReplicaNum: 1} }

func (a *arguments) sizes() []uint64 {
	s := make([]uint64, len(a.keys))
	for i := range s {
		s[i] = a.size
	}
	return s
}

func (a *arguments) metas() []object.Meta {
	m := make([]object.Meta, len(a.keys))
	for i := range m {
		m[i].Key = a.keys[i]
	}
	return m
}

// The calls under load.
var (
	callPing = calling(wire.Ping, shapePing, func(a *arguments) wire.PingRequest {
		return wire.PingRequest{ClientID: a.client}
	})
	callExist = calling(wire.ExistKey, shapeBool, func(a *arguments) wire.ExistKeyRequest {
		return wire.ExistKeyRequest{Key: a.keys[0], TenantID: a.tenant}
	})
	callBatchExist = calling(wire.BatchExistKey, shapeBool, func(a *arguments) wire.BatchExistKeyRequest {
		return wire.BatchExistKeyRequest{Keys: a.keys, TenantID: a.tenant}
	})
	callGet = calling(wire.GetReplicaList, shapeList, func(a *arguments) wire.GetReplicaListRequest {
		return wire.GetReplicaListRequest{Key: a.keys[0], TenantID: a.tenant}
	})
	callBatchGet = calling(wire.BatchGetReplicaList, shapeList, func(a *arguments) wire.BatchGetReplicaListRequest {
		return wire.BatchGetReplicaListRequest{Keys: a.keys, TenantID: a.tenant}
	})
	callPutStart = calling(wire.PutStart, shapeReplicas, func(a *arguments) wire.PutStartRequest {
		return wire.PutStartRequest{ClientID: a.client, Key: a.keys[0], SliceLength: a.size, Config: one(), TenantID: a.tenant}
	})
	callBatchPutStart = calling(wire.BatchPutStart, shapeReplicas, func(a *arguments) wire.BatchPutStartRequest {
		return wire.BatchPutStartRequest{ClientID: a.client, Keys: a.keys, SliceLengths: a.sizes(), Config: one(), TenantID: a.tenant}
	})
	callPutEnd = calling(wire.PutEnd, shapeVoid, func(a *arguments) wire.PutEndRequest {
		return wire.PutEndRequest{ClientID: a.client, ObjectMeta: object.Meta{Key: a.keys[0]}, ReplicaType: object.ReplicaAll, TenantID: a.tenant}
	})
	callBatchPutEnd = calling(wire.BatchPutEnd, shapeVoid, func(a *arguments) wire.BatchPutEndRequest {
		return wire.BatchPutEndRequest{ClientID: a.client, ObjectMetas: a.metas(), ReplicaType: object.ReplicaAll, TenantID: a.tenant}
	})
	callUpsertStart = calling(wire.UpsertStart, shapeReplicas, func(a *arguments) wire.UpsertStartRequest {
		return wire.UpsertStartRequest{ClientID: a.client, Key: a.keys[0], SliceLength: a.size, Config: one(), TenantID: a.tenant}
	})
	callBatchUpsertStart = calling(wire.BatchUpsertStart, shapeReplicas, func(a *arguments) wire.BatchUpsertStartRequest {
		return wire.BatchUpsertStartRequest{ClientID: a.client, Keys: a.keys, SliceLengths: a.sizes(), Config: one(), TenantID: a.tenant}
	})
	callUpsertEnd = calling(wire.UpsertEnd, shapeVoid, func(a *arguments) wire.UpsertEndRequest {
		return wire.UpsertEndRequest{ClientID: a.client, ObjectMeta: object.Meta{Key: a.keys[0]}, ReplicaType: object.ReplicaAll, TenantID: a.tenant}
	})
	callBatchUpsertEnd = calling(wire.BatchUpsertEnd, shapeVoid, func(a *arguments) wire.BatchUpsertEndRequest {
		return wire.BatchUpsertEndRequest{ClientID: a.client, ObjectMetas: a.metas(), TenantID: a.tenant}
	})
	callRemove = calling(wire.Remove, shapeVoid, func(a *arguments) wire.RemoveRequest {
		return wire.RemoveRequest{Key: a.keys[0], TenantID: a.tenant}
	})
	callBatchRemove = calling(wire.BatchRemove, shapeVoid, func(a *arguments) wire.BatchRemoveRequest {
		return wire.BatchRemoveRequest{Keys: a.keys, TenantID: a.tenant}
	})
)

// missCode stands for an answer that is no failure but says the key is not there.
const missCode int32 = 1

// missing reports whether a code says that a key looked up is not there, or not there yet: for
// lookups that is an answer, for anything else a failure.
func missing(code int32) bool {
	return code == int32(errcode.ObjectNotFound) || code == int32(errcode.ReplicaIsNotReady)
}

// codeExists is what a put of a key that is there is answered with; when filling, that is as
// good as having put it.
const codeExists = int32(errcode.ObjectAlreadyExists)

package wire

import (
	"fmt"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/structpack"
)

func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%064d", i)
	}
	return keys
}

// benchDecode decodes one request again and again into the same memory, as a server does.
func benchDecode[Req, Resp any](b *testing.B, r *RPC[Req, Resp], in Req) {
	body := r.AppendRequest(nil, &in, Latest, true)
	var req Req
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.DecodeRequest(body, &req); err != nil {
			b.Fatal(err)
		}
	}
}

// benchEncode encodes one reply again and again into the same memory.
func benchEncode[Req, Resp any](b *testing.B, r *RPC[Req, Resp], reply Resp) {
	form := structpack.Form{Literal: true, Compat: true}
	buf := r.AppendResponse(nil, &reply, form)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = r.AppendResponse(buf[:0], &reply, form)
	}
}

func benchReplicas() []object.ReplicaDescriptor {
	return []object.ReplicaDescriptor{{
		ID: 1, Status: object.ReplicaComplete,
		Location: object.Location{Memory: object.MemoryDescriptor{Buffer: object.BufferDescriptor{Size: 4096, Address: 1 << 40, Protocol: "tcp", Endpoint: "10.0.0.1:12345"}}},
	}}
}

func repeat[T any](n int, v T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = v
	}
	return all
}

func BenchmarkRequests(b *testing.B) {
	client, config := segment.UUID{First: 1, Second: 2}, object.ReplicateConfig{ReplicaNum: 1}
	keys, metas := benchKeys(128), make([]object.Meta, 128)
	for i := range metas {
		metas[i].Key = keys[i]
	}
	b.Run("GetReplicaList", func(b *testing.B) {
		benchDecode(b, GetReplicaList, GetReplicaListRequest{Key: keys[0], TenantID: "tenant-a"})
	})
	b.Run("PutStart", func(b *testing.B) {
		benchDecode(b, PutStart, PutStartRequest{ClientID: client, Key: keys[0], SliceLength: 4096, Config: config, TenantID: "tenant-a"})
	})
	b.Run("Ping", func(b *testing.B) { benchDecode(b, Ping, PingRequest{ClientID: client}) })
	b.Run("BatchGetReplicaList128", func(b *testing.B) {
		benchDecode(b, BatchGetReplicaList, BatchGetReplicaListRequest{Keys: keys, TenantID: "tenant-a"})
	})
	b.Run("BatchPutStart128", func(b *testing.B) {
		benchDecode(b, BatchPutStart, BatchPutStartRequest{ClientID: client, Keys: keys, SliceLengths: repeat(128, uint64(4096)), Config: config, TenantID: "tenant-a"})
	})
	b.Run("BatchPutEnd128", func(b *testing.B) {
		benchDecode(b, BatchPutEnd, BatchPutEndRequest{ClientID: client, ObjectMetas: metas, ReplicaType: object.ReplicaAll, TenantID: "tenant-a"})
	})
	b.Run("BatchRemove128", func(b *testing.B) {
		benchDecode(b, BatchRemove, BatchRemoveRequest{Keys: keys, TenantID: "tenant-a"})
	})
}

func BenchmarkReplies(b *testing.B) {
	read := errcode.Result[object.ReplicaList]{Value: object.ReplicaList{Replicas: benchReplicas(), LeaseTTLMs: 10_000}}
	written := errcode.Result[[]object.ReplicaDescriptor]{Value: benchReplicas()}
	b.Run("ExistKey", func(b *testing.B) { benchEncode(b, ExistKey, errcode.Result[bool]{Value: true}) })
	b.Run("GetReplicaList", func(b *testing.B) { benchEncode(b, GetReplicaList, read) })
	b.Run("PutStart", func(b *testing.B) { benchEncode(b, PutStart, written) })
	b.Run("Ping", func(b *testing.B) {
		benchEncode(b, Ping, errcode.Result[PingReply]{Value: PingReply{ClientStatus: ClientOK}})
	})
	b.Run("BatchGetReplicaList128", func(b *testing.B) { benchEncode(b, BatchGetReplicaList, repeat(128, read)) })
	b.Run("BatchPutStart128", func(b *testing.B) { benchEncode(b, BatchPutStart, repeat(128, written)) })
	b.Run("BatchRemove128", func(b *testing.B) {
		benchEncode(b, BatchRemove, make([]errcode.Result[errcode.Void], 128))
	})
}

package main

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/structpack"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

func itoa(n int) string { return strconv.Itoa(n) }

var dialects = []dialect{{wire.R0313, true}, {wire.R0313, false}, {wire.R0314, true}, {wire.R0314, false}}

// TestRequests patches encoded requests and compares them with what the codec writes.
func TestRequests(t *testing.T) {
	client := segment.UUID{First: 1 << 63, Second: 77}
	for _, d := range dialects {
		for o := range opCount {
			for _, s := range steps[o] {
				for _, n := range []int{1, 2, 300} {
					if o == opPing && n > 1 {
						continue
					}
					c := s.of(n)
					namer := keyNamer{length: 16 + n%50, salt: 99}
					r, err := newRequest(c, d, namer, len("tenant-000007"), n, 4096)
					if err != nil {
						t.Fatal(err)
					}
					var numbers []uint64
					a := arguments{client: client, tenant: "tenant-000007", size: 4096}
					for i := range n {
						numbers = append(numbers, uint64(i*i))
						a.keys = append(a.keys, namer.name(uint64(i*i)))
					}
					want := frame(c, d, &a)
					binary.LittleEndian.PutUint32(want[4:], 0xabcdef01)
					got := r.appendTo([]byte("before"), 0xabcdef01, namer, numbers, "tenant-000007", client)
					if string(got[len("before"):]) != string(want) {
						t.Errorf("%s of %d keys, %+v: patched request differs", c.name, n, d)
					}
				}
			}
		}
	}
}

func TestKeyNames(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range []uint64{0, 1, 2, 255, 256, 1 << 32, 1<<64 - 1} {
		k := keyNamer{length: 64, salt: 5}.name(n)
		if len(k) != 64 || seen[k] {
			t.Errorf("%d: %q", n, k)
		}
		seen[k] = true
	}
	if a, b := (keyNamer{16, 1}).name(3), (keyNamer{16, 2}).name(3); a == b || len(a) != 16 {
		t.Errorf("%q %q", a, b)
	}
}

var forms = []structpack.Form{{}, {Literal: true}, {Compat: true}, {Literal: true, Compat: true}}

// encoded returns a reply body in one form.
func encoded[Req, Resp any](r *wire.RPC[Req, Resp], v Resp, form structpack.Form) []byte {
	return r.AppendResponse(nil, &v, form)
}

// TestReplies reads replies that the codec wrote, in all forms, whole and cut short.
func TestReplies(t *testing.T) {
	sum, tenantName := uint64(1), "t"
	memory := func(endpoint string, locality *segment.Locality) object.ReplicaDescriptor {
		return object.ReplicaDescriptor{ID: 5, Status: object.ReplicaComplete, Location: object.Location{Memory: object.MemoryDescriptor{
			Buffer: object.BufferDescriptor{Size: 1, Address: 2, Protocol: "tcp", Endpoint: endpoint, Locality: locality},
		}}}
	}
	all := []object.ReplicaDescriptor{
		memory("host:1", nil), memory(string(make([]byte, 300)), &segment.Locality{NUMANode: 1, HCANames: []string{"a"}}),
		{Location: object.Location{Index: 1, NoF: &object.NoFDescriptor{Buffer: object.BufferDescriptor{Protocol: "nof"}}}},
		{Location: object.Location{Index: 2, Disk: &object.DiskDescriptor{FilePath: "/x", ObjectSize: 3}}},
		{Location: object.Location{Index: 3, LocalDisk: &object.LocalDiskDescriptor{Endpoint: "e"}}},
		{Location: object.Location{Index: 4, DFS: &object.DFSDescriptor{FilePath: "f"}}},
	}
	type replicas = errcode.Result[[]object.ReplicaDescriptor]
	type list = errcode.Result[object.ReplicaList]
	lists := []list{
		{Code: errcode.ObjectNotFound},
		{Value: object.ReplicaList{Replicas: all, LeaseTTLMs: 9, Checksum: &sum, ResolvedTenantID: &tenantName}},
		{Value: object.ReplicaList{Replicas: all[:1]}},
		{Code: errcode.InvalidParams},
	}
	tests := []struct {
		call *call
		body func(structpack.Form) []byte
		want []int32
	}{
		{callPing, func(f structpack.Form) []byte {
			return encoded(wire.Ping, errcode.Result[wire.PingReply]{Value: wire.PingReply{ClientStatus: wire.ClientOK}}, f)
		}, []int32{0}},
		{callExist, func(f structpack.Form) []byte { return encoded(wire.ExistKey, errcode.Result[bool]{}, f) }, []int32{missCode}},
		{callExist, func(f structpack.Form) []byte {
			return encoded(wire.ExistKey, errcode.Result[bool]{Code: errcode.InvalidParams}, f)
		}, []int32{-600}},
		{callBatchExist, func(f structpack.Form) []byte {
			return encoded(wire.BatchExistKey, []errcode.Result[bool]{{Value: true}, {}, {Code: -704}, {Value: true}}, f)
		}, []int32{0, missCode, -704, 0}},
		{callGet, func(f structpack.Form) []byte { return encoded(wire.GetReplicaList, lists[1], f) }, []int32{0}},
		{callBatchGet, func(f structpack.Form) []byte { return encoded(wire.BatchGetReplicaList, lists, f) }, []int32{missCode, 0, 0, -600}},
		{callPutStart, func(f structpack.Form) []byte { return encoded(wire.PutStart, replicas{Code: -200}, f) }, []int32{-200}},
		{callBatchPutStart, func(f structpack.Form) []byte {
			return encoded(wire.BatchPutStart, []replicas{{Value: all}, {Code: -705}, {Value: all[:2]}, {}}, f)
		}, []int32{0, -705, 0, 0}},
		{callBatchPutEnd, func(f structpack.Form) []byte {
			return encoded(wire.BatchPutEnd, []errcode.Result[errcode.Void]{{}, {Code: -601}}, f)
		}, []int32{0, -601}},
		{callRemove, func(f structpack.Form) []byte {
			return encoded(wire.Remove, errcode.Result[errcode.Void]{Code: errcode.ObjectNotFound}, f)
		}, []int32{-704}},
	}
	for _, test := range tests {
		for _, form := range forms {
			body := test.body(form)
			got, err := test.call.outcomes(nil, body, len(test.want))
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s %+v: %v %v, want %v", test.call.name, form, got, err, test.want)
			}
			compat := len(form14Tail(test.call, body, len(test.want)))
			for cut := range body[:len(body)-compat] {
				if _, err := test.call.outcomes(nil, body[:cut], len(test.want)); err == nil {
					t.Errorf("%s %+v: %d of %d bytes were accepted", test.call.name, form, cut, len(body))
				}
			}
			if _, err := test.call.outcomes(nil, body, len(test.want)+1); err == nil && test.call.batch {
				t.Errorf("%s: a reply about too few keys was accepted", test.call.name)
			}
		}
	}
	if _, err := callExist.outcomes(nil, encoded(wire.Remove, errcode.Result[errcode.Void]{}, structpack.Form{}), 1); err == nil {
		t.Error("a reply of another type was accepted")
	}
}

// form14Tail is what stands behind the ordinary payload of a body: compatible parts.
func form14Tail(c *call, body []byte, n int) []byte {
	k, err := c.open(body)
	if err != nil {
		return nil
	}
	if c.batch {
		k.size()
	}
	for range n {
		k.outcome(c.shape)
	}
	return body[k.pos:]
}

// TestGarbage makes sure that no reply makes the reader panic or loop.
func TestGarbage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		c := []*call{callBatchGet, callBatchPutStart, callGet, callBatchExist}[rng.IntN(4)]
		body := binary.LittleEndian.AppendUint32(nil, c.hash|1)
		body = append(body, byte(rng.Uint32()))
		for range rng.IntN(60) {
			body = append(body, byte(rng.Uint32N(6)))
		}
		codes, err := c.outcomes(nil, body, 3)
		if err == nil && len(codes) != 3 {
			t.Fatalf("%d outcomes", len(codes))
		}
	}
}

type uuid = segment.UUID

// encodedTrue is the reply that a key is there.
func encodedTrue() []byte {
	return encoded(wire.ExistKey, errcode.Result[bool]{Value: true}, structpack.Form{})
}

// encodedStarts is the reply to a BatchPutStart with these codes.
func encodedStarts(codes ...errcode.Code) []byte {
	var all []errcode.Result[[]object.ReplicaDescriptor]
	for _, c := range codes {
		all = append(all, errcode.Result[[]object.ReplicaDescriptor]{Code: c})
	}
	return encoded(wire.BatchPutStart, all, structpack.Form{})
}

// encodedEnds is the reply to a BatchPutEnd with these codes.
func encodedEnds(codes ...errcode.Code) []byte {
	var all []errcode.Result[errcode.Void]
	for _, c := range codes {
		all = append(all, errcode.Result[errcode.Void]{Code: c})
	}
	return encoded(wire.BatchPutEnd, all, structpack.Form{})
}

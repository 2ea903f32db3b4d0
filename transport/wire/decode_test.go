package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/weight"
	"github.com/mooncake-go/mooncake-master/transport/structpack"
)

// body builds a request body by hand.
func body(hash uint32, meta []byte, payload string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, hash)
	return append(append(b, meta...), payload...)
}

func TestRequestForms(t *testing.T) {
	const exist, ping = 0x7cf91ed8, 0x3c6d83e0
	literal := "\xfd\x80\x0c\x80\x0c\xff\x00"
	for _, tt := range []struct {
		name string
		body []byte
		err  error
	}{
		{"compact", body(exist, nil, "\x01k\x01t"), nil},
		{"metainfo 0", body(exist|1, []byte{0}, "\x01k\x01t"), nil},
		{"literal", body(exist|1, []byte{4}, literal+"\x01k\x01t"), nil},
		{"high bits", body(exist|1, []byte{0xe0}, "\x01k\x01t"), nil},
		{"width 2", body(exist|1, []byte{0x08}, "\x01\x00k\x01\x00t"), nil},
		{"width 4", body(exist|1, []byte{0x10}, "\x01\x00\x00\x00k\x01\x00\x00\x00t"), nil},
		{"width 8", body(exist|1, []byte{0x18}, "\x01\x00\x00\x00\x00\x00\x00\x00k\x01\x00\x00\x00\x00\x00\x00\x00t"), nil},
		{"length of 2 bytes", body(exist|1, []byte{1}, "\xff\xff\x01k\x01t"), nil},
		{"length of 4 bytes, wrong", body(exist|1, []byte{2}, "\x00\x00\x00\x00\x01k\x01t"), nil},
		{"length of 8 bytes", body(exist|1, []byte{3}, "\x00\x00\x00\x00\x00\x00\x00\x80\x01k\x01t"), nil},
		{"trailing bytes", body(exist, nil, "\x01k\x01tgarbage"), nil},
		{"empty", nil, structpack.ErrShort},
		{"three bytes", []byte("abc"), structpack.ErrShort},
		{"hash only", body(exist, nil, ""), structpack.ErrShort},
		{"odd hash only", body(exist|1, nil, ""), structpack.ErrShort},
		{"cut length", body(exist|1, []byte{3}, "\x00\x00"), structpack.ErrShort},
		{"cut string", body(exist, nil, "\x01k\x02t"), structpack.ErrShort},
		{"other hash", body(ping, nil, "\x01k\x01t"), structpack.ErrHash},
		{"wrong literal", body(exist|1, []byte{4}, "\xfd\x80\x0c\x80\x0b\xff\x00\x01k\x01t"), structpack.ErrLiteral},
		{"literal without end", body(exist|1, []byte{4}, "\xfd\x80\x0c\x80\x0c\xff"), structpack.ErrLiteral},
		{"literal not ended by zero", body(exist|1, []byte{4}, "\xfd\x80\x0c\x80\x0c\xff\x01\x01k\x01t"), structpack.ErrLiteral},
		{"size 2^63", body(exist|1, []byte{0x18}, "\x00\x00\x00\x00\x00\x00\x00\x80obj"), structpack.ErrShort},
		{"size 2^64-1", body(exist|1, []byte{0x18}, "\xff\xff\xff\xff\xff\xff\xff\xffobj"), structpack.ErrShort},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := ExistKeyRequest{Key: "stale", TenantID: "stale"}
			_, err := ExistKey.DecodeRequest(tt.body, &req)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if want := (ExistKeyRequest{"k", "t"}); err == nil && req != want {
				t.Errorf("request %+v, want %+v", req, want)
			}
		})
	}
}

func TestOneArgumentForms(t *testing.T) {
	id := "\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"
	tuple := []byte("\xfd\xfd\x04\x04\x89\x89\xff\xff")
	for name, b := range map[string][]byte{
		"bare":            body(0x3c6d83e0, nil, id),
		"bare, literal":   body(0x3c6d83e0|1, []byte{4}, "\xfd\x04\x04\x89\x89\xff\x00"+id),
		"tuple":           body(structpack.Hash(tuple), nil, id),
		"tuple, literal":  body(structpack.Hash(tuple)|1, []byte{4}, string(tuple)+"\x00"+id),
		"tuple, metainfo": body(structpack.Hash(tuple)|1, []byte{0}, id),
	} {
		var req PingRequest
		if _, err := Ping.DecodeRequest(b, &req); err != nil || req.ClientID.First != 1 || req.ClientID.Second != 2 {
			t.Errorf("%s: %+v, %v", name, req, err)
		}
	}
	var none ServiceReadyRequest
	for _, b := range []string{"", "x", "any body at all"} {
		if _, err := ServiceReady.DecodeRequest([]byte(b), &none); err != nil {
			t.Errorf("no arguments with body %q: %v", b, err)
		}
	}
}

func TestOutOfRangeValues(t *testing.T) {
	var all RemoveAllRequest
	if _, err := RemoveAll.DecodeRequest(body(0x48a6c274, nil, "\x02\x00"), &all); err != nil || !all.Force {
		t.Errorf("bool 2: %+v, %v", all, err)
	}
	var end PutEndRequest
	b := body(0xd1819222, nil, strings.Repeat("\x00", 16)+"\x01k\x07"+strings.Repeat("\x01", 8)+"\x4d\x00\x00\x00\x00")
	if _, err := PutEnd.DecodeRequest(b, &end); err != nil || end.ReplicaType != 77 || end.ObjectMeta.Checksum == nil {
		t.Errorf("optional flag 7, replica type 77: %+v, %v", end, err)
	}
	var resp errcode.Result[object.ReplicaList]
	b = body(GetReplicaList.Row().ResponseHash, nil, "\x01\x01"+strings.Repeat("\x00", 8)+"\x05"+strings.Repeat("\x00", 40))
	if _, err := GetReplicaList.DecodeResponse(b, &resp); !errors.Is(err, structpack.ErrVariant) {
		t.Errorf("variant index 5: %v", err)
	}
}

// TestHostileCounts announces far more elements than follow; nothing may be allocated for
// them.
func TestHostileCounts(t *testing.T) {
	for name, c := range map[string]struct {
		call    anyCall
		payload string
	}{
		"2^32-1 strings":  {callNamed(t, "BatchExistKey"), "\xff\xff\xff\xff"},
		"2^32-1 segments": {callNamed(t, "ReMountSegment"), "\xff\xff\xff\xff" + strings.Repeat("\x00", 100)},
		"2^28 ids":        {callNamed(t, "BatchQueryIp"), "\x00\x00\x00\x10" + strings.Repeat("\x00", 100)},
	} {
		b := body(c.call.Row().Requests[0].Hash|1, []byte{0x10}, c.payload)
		v := c.call.newRequest()
		if _, err := c.call.decodeRequest(b, v); !errors.Is(err, structpack.ErrShort) {
			t.Errorf("%s: %v", name, err)
		}
		if n := testing.AllocsPerRun(10, func() { _, _ = c.call.decodeRequest(b, v) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func replicaList(replicas int, tenant string) errcode.Result[object.ReplicaList] {
	var r errcode.Result[object.ReplicaList]
	for i := range replicas {
		r.Value.Replicas = append(r.Value.Replicas, object.ReplicaDescriptor{
			ID: uint64(i),
			Location: object.Location{Memory: object.MemoryDescriptor{Buffer: object.BufferDescriptor{
				Size: 1 << 20, Address: 1 << 40, Protocol: "tcp", Endpoint: "10.0.0.1:12345",
				Locality: &segment.Locality{NUMANode: 1, HCANames: []string{"mlx5_0"}},
			}}},
			Status: object.ReplicaComplete,
		})
	}
	r.Value.LeaseTTLMs = 10000
	r.Value.ResolvedTenantID = &tenant
	return r
}

// TestCompatiblePart follows the readers of 0.3.14: presence bytes may be missing, the
// announced length may be wrong, fields past it are absent, and what an earlier value left
// behind is gone.
func TestCompatiblePart(t *testing.T) {
	full := replicaList(1, "tenant-a")
	b := GetReplicaList.AppendResponse(nil, &full, structpack.Form{Compat: true})
	if b[4] != 1 || int(binary.LittleEndian.Uint16(b[5:])) != len(b) {
		t.Fatalf("metainfo %#x and length %d in a body of %d bytes", b[4], binary.LittleEndian.Uint16(b[5:]), len(b))
	}
	withLength := func(b []byte, n int) []byte {
		b = slices.Clone(b)
		binary.LittleEndian.PutUint16(b[5:], uint16(n))
		return b
	}
	tail := len("\x01\x08tenant-a")
	for _, tt := range []struct {
		name             string
		body             []byte
		locality, tenant bool
	}{
		{"whole", b, true, true},
		{"length too large", withLength(b, 65535), true, true},
		{"trailing bytes", append(slices.Clone(b), "xyz"...), true, true},
		{"length ends before the second field", withLength(b, len(b)-tail), true, false},
		{"bytes end before the second field", b[:len(b)-tail], true, false},
		{"length 0", withLength(b, 0), false, false},
	} {
		v := replicaList(3, "stale")
		if _, err := GetReplicaList.DecodeResponse(tt.body, &v); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if len(v.Value.Replicas) != 1 {
			t.Fatalf("%s: %d replicas", tt.name, len(v.Value.Replicas))
		}
		l, r := v.Value.Replicas[0].Location.Memory.Buffer.Locality, v.Value.ResolvedTenantID
		if (l != nil) != tt.locality || (r != nil) != tt.tenant {
			t.Errorf("%s: locality %v, tenant %v", tt.name, l, r)
		}
		if l != nil && (l.NUMANode != 1 || !slices.Equal(l.HCANames, []string{"mlx5_0"})) || r != nil && *r != "tenant-a" {
			t.Errorf("%s: locality %v, tenant %v", tt.name, l, r)
		}
	}
	if _, err := GetReplicaList.DecodeResponse(b[:len(b)-1], &full); !errors.Is(err, structpack.ErrShort) {
		t.Errorf("cut in a compatible value: %v", err)
	}
}

// TestLengthWidth crosses the size at which the total length takes four bytes.
func TestLengthWidth(t *testing.T) {
	for size := 65400; size < 65560; size++ {
		r := replicaList(1, strings.Repeat("t", size))
		b := GetReplicaList.AppendResponse([]byte("before"), &r, structpack.Form{Literal: true, Compat: true})[len("before"):]
		switch meta := b[4]; meta & 3 {
		case 1:
			if n := int(binary.LittleEndian.Uint16(b[5:])); n != len(b) || n > 65535 {
				t.Fatalf("length %d in a body of %d bytes", n, len(b))
			}
		case 2:
			if n := int(binary.LittleEndian.Uint32(b[5:])); n != len(b) || n-2 <= 65535 {
				t.Fatalf("length %d in a body of %d bytes", n, len(b))
			}
		default:
			t.Fatalf("metainfo %#x", meta)
		}
		var back errcode.Result[object.ReplicaList]
		if _, err := GetReplicaList.DecodeResponse(b, &back); err != nil || len(*back.Value.ResolvedTenantID) != size {
			t.Fatalf("size %d: %v", size, err)
		}
	}
}

func TestWideSizes(t *testing.T) {
	req := BatchExistKeyRequest{Keys: []string{"a", strings.Repeat("k", 70000), "b"}, TenantID: "t"}
	b := BatchExistKey.AppendRequest(nil, &req, Latest, false)
	if b[0]&1 != 1 || b[4] != 0x10 {
		t.Fatalf("body starts with % x", b[:5])
	}
	var back BatchExistKeyRequest
	if _, err := BatchExistKey.DecodeRequest(b, &back); err != nil || !slices.Equal(back.Keys, req.Keys) {
		t.Errorf("%d keys, %v", len(back.Keys), err)
	}
}

func TestStringsAliasTheBody(t *testing.T) {
	b := body(0x7cf91ed8, nil, "\x03key\x01t")
	var req ExistKeyRequest
	if _, err := ExistKey.DecodeRequest(b, &req); err != nil {
		t.Fatal(err)
	}
	if unsafe.StringData(req.Key) != &b[5] {
		t.Error("the key was copied")
	}
}

func TestResetKeepsMemory(t *testing.T) {
	var resp []errcode.Result[object.ReplicaList]
	resp = append(resp, replicaList(4, "t"), replicaList(2, "t"))
	resp[1].Code = errcode.ObjectNotFound
	BatchGetReplicaList.ResetResponse(&resp)
	if len(resp) != 0 || cap(resp) < 2 {
		t.Fatalf("length %d, capacity %d", len(resp), cap(resp))
	}
	resp = structpack.Resize(resp, 2)
	for i, want := range []int{4, 2} {
		r := &resp[i]
		if r.Code != 0 || r.Value.ResolvedTenantID != nil || r.Value.LeaseTTLMs != 0 || len(r.Value.Replicas) != 0 || cap(r.Value.Replicas) < want {
			t.Errorf("element %d: %+v, capacity %d", i, r, cap(r.Value.Replicas))
		}
		for _, d := range r.Value.Replicas[:want] {
			if d != (object.ReplicaDescriptor{}) {
				t.Errorf("element %d holds %+v beyond its length", i, d)
			}
		}
	}
	if resp = structpack.Resize(resp, 100); len(resp) != 100 || cap(resp[0].Value.Replicas) < 4 {
		t.Errorf("growing lost the memory inside the elements")
	}
}

func TestTally(t *testing.T) {
	ok, bad := errcode.Result[bool]{}, errcode.Result[bool]{Code: errcode.InternalError}
	check := func(name string, items, failed, wantItems, wantFailed int) {
		t.Helper()
		if items != wantItems || failed != wantFailed {
			t.Errorf("%s: %d items, %d failed; want %d, %d", name, items, failed, wantItems, wantFailed)
		}
	}
	i, f := ExistKey.Tally(nil, &ok)
	check("ok", i, f, 1, 0)
	i, f = ExistKey.Tally(nil, &bad)
	check("error", i, f, 1, 1)
	i, f = BatchExistKey.Tally(nil, &[]errcode.Result[bool]{ok, bad, ok})
	check("batch", i, f, 3, 1)
	i, f = BatchExistKey.Tally(nil, &[]errcode.Result[bool]{})
	check("empty batch", i, f, 0, 0)
	n := int64(-1)
	i, f = RemoveAll.Tally(nil, &n)
	check("negative number", i, f, 1, 1)
	w := WeightResult[WeightMetadata]{Code: weight.Busy}
	i, f = BeginWeightImport.Tally(nil, &w)
	check("weight error", i, f, 1, 1)
	clear := errcode.Result[[]string]{Value: []string{"a", "b"}}
	i, f = BatchReplicaClear.Tally(&BatchReplicaClearRequest{ObjectKeys: []string{"a", "x", "b"}}, &clear)
	check("one of three not cleared", i, f, 3, 1)
	clear = errcode.Result[[]string]{Code: errcode.InvalidParams}
	i, f = BatchReplicaClear.Tally(&BatchReplicaClearRequest{ObjectKeys: []string{"a", "x", "b"}}, &clear)
	check("nothing cleared", i, f, 3, 3)
	ips := errcode.Result[Map[segment.UUID, []string]]{}
	i, f = BatchQueryIp.Tally(&BatchQueryIpRequest{}, &ips)
	check("nobody asked about", i, f, 0, 0)
	if ExistKey.Itemized() || !BatchExistKey.Itemized() || !BatchReplicaClear.Itemized() || !BatchQueryIp.Itemized() || GetReplicaListByRegex.Itemized() {
		t.Error("wrong idea of which calls have items")
	}
	if ExistKey.Batch() || !BatchExistKey.Batch() || RemoveAll.Batch() {
		t.Error("wrong idea of which calls are batches")
	}
}

func TestBatchReplicaClearForms(t *testing.T) {
	req := BatchReplicaClearRequest{ObjectKeys: []string{"k"}, SegmentName: "s", TenantID: "t"}
	for release, want := range map[Release]struct {
		hash   uint32
		tenant string
	}{R0313: {0x472b2fa2, DefaultTenant}, R0314: {0xfa9abb1a, "t"}} {
		b := BatchReplicaClear.AppendRequest(nil, &req, release, false)
		if got := binary.LittleEndian.Uint32(b); got != want.hash {
			t.Errorf("%v: hash 0x%08x, want 0x%08x", release, got, want.hash)
		}
		var back BatchReplicaClearRequest
		if _, err := BatchReplicaClear.DecodeRequest(b, &back); err != nil || back.TenantID != want.tenant || back.SegmentName != "s" {
			t.Errorf("%v: %+v, %v", release, back, err)
		}
	}
	if R0313.String() != "0.3.13" || R0314.String() != "0.3.14" {
		t.Errorf("releases are called %v and %v", R0313, R0314)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	exist := ExistKey.AppendRequest(nil, &ExistKeyRequest{"key-of-usual-length-0001", "tenant-a"}, Latest, true)
	keys := make([]string, 128)
	for i := range keys {
		keys[i] = strings.Repeat("k", 40)
	}
	batch := BatchExistKey.AppendRequest(nil, &BatchExistKeyRequest{keys, "tenant-a"}, Latest, true)
	list := replicaList(2, "tenant-a")
	reply := GetReplicaList.AppendResponse(nil, &list, structpack.Form{Literal: true, Compat: true})

	var existReq ExistKeyRequest
	var batchReq BatchExistKeyRequest
	var listResp errcode.Result[object.ReplicaList]
	var buf []byte
	for name, f := range map[string]func() error{
		"ExistKey": func() error {
			_, err := ExistKey.DecodeRequest(exist, &existReq)
			buf = ExistKey.AppendRequest(buf[:0], &existReq, Latest, true)
			return err
		},
		"BatchExistKey": func() error {
			_, err := BatchExistKey.DecodeRequest(batch, &batchReq)
			buf = BatchExistKey.AppendRequest(buf[:0], &batchReq, Latest, true)
			return err
		},
		"GetReplicaList reply": func() error {
			_, err := GetReplicaList.DecodeResponse(reply, &listResp)
			buf = GetReplicaList.AppendResponse(buf[:0], &listResp, structpack.Form{Literal: true, Compat: true})
			return err
		},
	} {
		var failure error
		if n := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				failure = err
			}
		}); n != 0 || failure != nil {
			t.Errorf("%s: %v allocations, error %v", name, n, failure)
		}
	}
	if !bytes.Equal(reply, GetReplicaList.AppendResponse(nil, &listResp, structpack.Form{Literal: true, Compat: true})) {
		t.Error("the reply changed on the way")
	}
}

func BenchmarkDecodeExistKey(b *testing.B) {
	in := ExistKey.AppendRequest(nil, &ExistKeyRequest{"key-of-usual-length-0001", "tenant-a"}, Latest, true)
	var req ExistKeyRequest
	for b.Loop() {
		if _, err := ExistKey.DecodeRequest(in, &req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeBatchExistKey128(b *testing.B) {
	keys := make([]string, 128)
	for i := range keys {
		keys[i] = strings.Repeat("k", 40)
	}
	in := BatchExistKey.AppendRequest(nil, &BatchExistKeyRequest{keys, "tenant-a"}, Latest, true)
	var req BatchExistKeyRequest
	for b.Loop() {
		if _, err := BatchExistKey.DecodeRequest(in, &req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeReplicaList(b *testing.B) {
	list := replicaList(2, "tenant-a")
	var buf []byte
	for b.Loop() {
		buf = GetReplicaList.AppendResponse(buf[:0], &list, structpack.Form{Literal: true, Compat: true})
	}
}

func BenchmarkEncodeBatchExistKeyReply128(b *testing.B) {
	list := make([]errcode.Result[bool], 128)
	var buf []byte
	for b.Loop() {
		buf = BatchExistKey.AppendResponse(buf[:0], &list, structpack.Form{Literal: true, Compat: true})
	}
}

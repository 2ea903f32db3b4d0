package segment

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"
)

// FuzzParseDescriptor has descriptors of the release and what others may send: they are taken whole or refused, and
// what is taken is the same when it is published again.
func FuzzParseDescriptor(f *testing.F) {
	for _, text := range []string{
		`{"buffers":[{"addr":139889651691584,"length":16777216,"name":"127.0.0.1:17901"},{"addr":139889215537152,"length":268435456,"name":"127.0.0.1:17901"}],"name":"127.0.0.1:17901","protocol":"tcp","rdma_server_name":"","tcp_data_host":"192.0.2.2","tcp_data_port":15665,"tcp_proto_version":2,"timestamp":"2026-11-29 17:06:39.690487"}`,
		`{"buffers":[{"addr":139806956818496,"length":16777216,"lkey":[6145,6401],"name":"cpu:0","rkey":[]},{"addr":139806654857216,"length":268435456,"lkey":[6657,6913],"name":"*","rkey":[6657,6913]}],"devices":[{"gid":"00:00:00:00:00:00:00:00:00:00:ff:ff:7f:00:00:01","lid":0,"name":"softrdma0"},{"gid":"00:00:00:00:00:00:00:00:00:00:ff:ff:7f:00:00:02","lid":0,"name":"softrdma1"}],"name":"127.0.0.1:17901","priority_matrix":{"cpu:0":[["softrdma0","softrdma1"],[]]},"protocol":"rdma","tcp_data_port":0,"tcp_proto_version":1,"timestamp":"2026-11-29 17:14:13.787901"}`,
		`{"name":"a","protocol":["rdma","tcp"],"buffers":[{"addr":18446744073709551615,"length":1,"name":"b"}]}`,
		`{"name":"a","protocol":[null],"buffers":null,"priority_matrix":{"":null}}`,
		`null`, `{}`, `{"name":1}`, `{"name":"a","protocol":"tcp","tcp_data_port":65536}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := ParseDescriptor(text)
		if err != nil {
			return
		}
		for i := range d.Buffers {
			b := &d.Buffers[i]
			if d.find(b.Addr, b.Length) == nil || d.find(b.Addr, 0) != nil {
				t.Errorf("%+v isn't found where it is", *b)
			}
			if b.contains(b.Addr, b.Length+1) || b.contains(b.Addr+1, b.Length) || b.contains(b.Addr+1, math.MaxUint64) {
				t.Errorf("%+v contains more than it is", *b)
			}
		}
		d.Speaks(ProtocolTCP)
		again, err := ParseDescriptor(d.encode(time.Unix(0, 0)))
		if err != nil {
			t.Fatalf("%s: what was taken is not taken again: %v", text, err)
		}
		again.Timestamp = d.Timestamp
		// JSON has no difference between none and empty.
		one, _ := json.Marshal(d)
		two, _ := json.Marshal(again)
		if d.Buffers != nil && !reflect.DeepEqual(one, two) {
			t.Errorf("%s becomes %s", one, two)
		}
	})
}

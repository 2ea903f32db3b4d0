package node

import (
	"reflect"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/task"
)

// TestPayloads reads what the master writes, whatever bytes names are made of.
func TestPayloads(t *testing.T) {
	for _, name := range []string{
		"k", "", "\"\\/\n\x00\x7f", "héllo €", "😀\u2028", "\U0010ffff", "\U0010ffff00", "\xff", "a\xff\xfeb", "\xff\U0010ffff\xfe0", "\ufffd\xc3",
		`\uDBFF\uDFFF`, "\\\U0010ffff", "0\xe2\x82",
	} {
		c := task.CopyPayload{TenantID: "t" + name, Key: name, Source: name + "s", Targets: []string{name, "b"}, LeaseHigh: 1<<64 - 1, LeaseLow: 2, Epoch: 3}
		if got, err := copyPayload(c.JSON()); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s reads as %+v (%v)", c.JSON(), got, err)
		}
		m := task.MovePayload{TenantID: "t" + name, Key: name, Source: name + "s", Target: name}
		if got, err := movePayload(m.JSON()); err != nil || got != m {
			t.Errorf("%s reads as %+v (%v)", m.JSON(), got, err)
		}
	}
	for _, bad := range []string{"", "{", `{"key":1}`, "[]"} {
		if _, err := movePayload(bad); err == nil {
			t.Errorf("%q is a payload", bad)
		}
	}
}

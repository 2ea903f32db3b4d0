package core_test

import (
	"testing"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// TestAffinityIsLikeAGroup: an object keeps the affinity it was made with; an upsert that names another one is
// refused, one that names none keeps it, and "" names that there is none. So says release 0.3.14.
func TestAffinityIsLikeAGroup(t *testing.T) {
	affine := func(id string) mastertest.Option {
		return func(c *object.ReplicateConfig) { c.ResidencyAffinityIDs = &[]string{id} }
	}
	m := mastertest.New(t)
	m.Mount(1, "seg", 16<<20)
	m.MustPut("", "plain", 1000)
	m.MustPut("", "x", 1000, affine("x"))
	upsert := func(key string, size uint64, opts ...mastertest.Option) errcode.Code {
		_, code := m.UpsertStart(mastertest.ID(1), "", key, size, mastertest.Config(opts...), nil)
		if code == errcode.OK {
			code = m.End("", key)
		}
		return code
	}
	for _, c := range []struct {
		key  string
		opts []mastertest.Option
		want errcode.Code
	}{
		{"plain", nil, errcode.OK},
		{"plain", []mastertest.Option{affine("")}, errcode.OK},
		{"plain", []mastertest.Option{affine("x")}, errcode.InvalidParams},
		{"x", nil, errcode.OK},
		{"x", []mastertest.Option{affine("x")}, errcode.OK},
		{"x", []mastertest.Option{affine("y")}, errcode.InvalidParams},
		{"x", []mastertest.Option{affine("")}, errcode.InvalidParams},
	} {
		for _, size := range []uint64{1000, 2000, 1000} { // in place, and as another object
			if got := upsert(c.key, size, c.opts...); got != c.want {
				t.Errorf("upsert of %s with %d options to %d bytes: %v, want %v", c.key, len(c.opts), size, got, c.want)
			}
		}
	}
}

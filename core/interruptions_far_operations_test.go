package core_test

import (
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// farOperation is something under way, and the ways it may end.
type farOperation struct {
	name        string
	change      func(*core.Config)
	begin       func(*far)
	end, revoke func(*far) errcode.Code
	stranger    func(*far) errcode.Code // ends it, though it isn't his
	gone        func(*far) errcode.Code // what is neither the source nor in memory goes
}

func (f *far) unmount(n uint64, name string) errcode.Code {
	return f.UnmountSegment(mastertest.Segment(n, name, 0).ID, mastertest.ID(n))
}

func farCopies(name string, begun bool) farOperation {
	start := func(f *far) errcode.Code {
		if begun {
			return errcode.OK
		}
		return f.copy.start(f.Master)
	}
	return farOperation{
		name: name,
		change: func(c *core.Config) {
			c.DynamicReplication.Mode, c.DynamicReplication.HeatWindow = core.ReplicationEnforce, 3*time.Second
		},
		begin: func(f *far) {
			if f.proposed(); begun {
				f.ok("start", f.copy.start(f.Master))
			}
		},
		end:      func(f *far) errcode.Code { return first(start(f), func() errcode.Code { return f.copy.end(f.Master) }) },
		revoke:   func(f *far) errcode.Code { return f.DynamicCopyRevoke(mastertest.ID(1), "t", "k", f.copy.token) },
		stranger: func(f *far) errcode.Code { return f.DynamicCopyEnd(mastertest.ID(2), "t", "k", f.copy.token) },
		gone:     func(f *far) errcode.Code { return f.unmount(2, "b") },
	}
}

func farMoves(name string, begun bool) farOperation {
	start := func(f *far) errcode.Code {
		if begun {
			return errcode.OK
		}
		return f.move()
	}
	return farOperation{
		name:   name,
		change: func(*core.Config) {},
		begin: func(f *far) {
			if f.draining(); begun {
				f.ok("start", f.move())
			}
		},
		end: func(f *far) errcode.Code {
			return first(start(f), func() errcode.Code { return f.moveOver(f.MoveEnd) })
		},
		revoke:   func(f *far) errcode.Code { return f.moveOver(f.MoveRevoke) },
		stranger: func(f *far) errcode.Code { return f.MoveEnd(mastertest.ID(2), "t", "k") },
		gone:     func(f *far) errcode.Code { return f.unmount(2, "b") },
	}
}

// farFiles are writes that put a replica into the shared file system as well; its parts end by themselves.
func farFiles(name string, begin func(*far)) farOperation {
	return farOperation{
		name: name, change: shared, begin: begin,
		end: func(f *far) errcode.Code {
			return first(f.end(9, object.ReplicaAll), func() errcode.Code { return f.end(9, object.ReplicaDisk) })
		},
		revoke: func(f *far) errcode.Code {
			return min(f.revoke(9, object.ReplicaDisk), f.revoke(9, object.ReplicaAll))
		},
		stranger: func(f *far) errcode.Code { return f.end(8, object.ReplicaDisk) },
		gone:     func(f *far) errcode.Code { return f.EvictDiskReplica(mastertest.ID(9), "t", "k", object.ReplicaDisk) },
	}
}

// farDevices are writes to an NVMe-oF segment.
func farDevices(name string, begin func(*far)) farOperation {
	return farOperation{
		name: name, change: withNoF,
		begin: func(f *far) {
			f.ok("device", f.MountNoFSegment(device(5, "d", 1<<20), mastertest.ID(1)))
			begin(f)
		},
		end:      func(f *far) errcode.Code { return f.end(9, object.ReplicaAll) },
		revoke:   func(f *far) errcode.Code { return f.revoke(9, object.ReplicaAll) },
		stranger: func(f *far) errcode.Code { return f.end(8, object.ReplicaAll) },
		gone:     func(f *far) errcode.Code { return f.UnmountNoFSegment(mastertest.ID(5), mastertest.ID(1)) },
	}
}

var farOperations = []farOperation{
	farCopies("copy asked for", false),
	farCopies("copy begun", true),
	farMoves("move asked for", false),
	farMoves("move begun", true),
	farFiles("file: put", func(f *far) { f.ok("put", f.start(false, 9, 1)) }),
	farFiles("file: memory ended", func(f *far) {
		f.ok("put", f.start(false, 9, 1))
		f.ok("end", f.end(9, object.ReplicaMemory))
	}),
	farFiles("file: file ended", func(f *far) {
		f.ok("put", f.start(false, 9, 1))
		f.ok("end", f.end(9, object.ReplicaDisk))
	}),
	farFiles("file: memory revoked", func(f *far) {
		f.ok("put", f.start(false, 9, 1))
		f.ok("revoke", f.revoke(9, object.ReplicaMemory))
	}),
	farFiles("file: file revoked", func(f *far) {
		f.ok("put", f.start(false, 9, 1))
		f.ok("revoke", f.revoke(9, object.ReplicaDisk))
	}),
	farFiles("file: larger", func(f *far) { f.stored(); f.ok("upsert", f.start(true, 9, 2)) }),
	farFiles("file: larger, file ended", func(f *far) {
		f.stored()
		f.ok("upsert", f.start(true, 9, 2))
		f.ok("end", f.end(9, object.ReplicaDisk))
	}),
	farFiles("file: larger, memory revoked", func(f *far) {
		f.stored()
		f.ok("upsert", f.start(true, 9, 2))
		f.ok("revoke", f.revoke(9, object.ReplicaMemory))
	}),
	farFiles("file: in place", func(f *far) { f.stored(); f.ok("upsert", f.start(true, 9, 1)) }),
	farDevices("device: put", func(f *far) { f.ok("put", f.start(false, 9, 1, replicas(1, 1))) }),
	farDevices("device: no memory", func(f *far) { f.ok("put", f.start(false, 9, 1, replicas(0, 1))) }),
	farDevices("device: two and one", func(f *far) { f.ok("put", f.start(false, 9, 1, replicas(2, 1))) }),
	farDevices("device: larger", func(f *far) {
		f.stored(replicas(1, 1))
		f.ok("upsert", f.start(true, 9, 2, replicas(1, 1)))
	}),
	{
		name: "device: copy", change: withNoF,
		begin: func(f *far) {
			f.ok("device", f.MountNoFSegment(device(5, "d", 1<<20), mastertest.ID(1)))
			f.stored(replicas(1, 1))
			_, code := f.CopyStart(mastertest.ID(1), "t", "k", "a", []string{"b"})
			f.ok("copy", code)
		},
		end:      func(f *far) errcode.Code { return f.CopyEnd(mastertest.ID(1), "t", "k") },
		revoke:   func(f *far) errcode.Code { return f.CopyRevoke(mastertest.ID(1), "t", "k") },
		stranger: func(f *far) errcode.Code { return f.CopyEnd(mastertest.ID(2), "t", "k") },
		gone:     func(f *far) errcode.Code { return f.UnmountNoFSegment(mastertest.ID(5), mastertest.ID(1)) },
	},
}

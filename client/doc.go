// Package client puts values into a Mooncake pool and gets them back: the master says where, and the
// bytes go straight to and from the memory of whoever lends it, by TCP or RDMA.
//
//	c, err := client.Dial(ctx, client.Config{Master: "127.0.0.1:50051", Metadata: segment.P2P, Tenant: "team-a"})
//	defer c.Close()
//	err = c.Put(ctx, "key", value)
//	value, err := c.Get(ctx, "key")
//
// One Client is enough for a process: it is safe for concurrent use and keeps the connections it needs, to the master and
// to the owners of memory.
//
// # Writing
//
// Put wants a key without a value, Upsert takes any. PutFrom and UpsertFrom stream a value whose size is known;
// PutBatch and UpsertBatch write many, and ask the master twice in all. Options say how values are kept: Replicas, Prefer,
// SameNode, HardPin, SoftPin, Group, Checksum. A write that fails, or whose context ends, is taken back, so that
// nothing stays charged. A value has at least one byte.
//
// # Reading
//
// Get allocates, GetInto reads into memory of the caller without copies in between, GetTo streams, GetRange reads a
// part, GetBatch and GetBatchInto read many. When a replica can't be read the next one is, and when none can the master is
// asked once more, since the value may have moved.
//
// The master protects a value that was looked up for a while, its lease. A read that takes longer extends it; one that could not
// is thrown away and made again. So what is returned was the value, at some time during the call.
//
// # Errors
//
// What the master refuses is an errcode.Code inside the error: errors.Is(err, errcode.ObjectNotFound). So are the
// client's own failures: errcode.TransferFail, errcode.ChecksumMismatch, errcode.LeaseExpired, errcode.RPCFail when a
// master can't be reached, and errcode.RPCTimeout when it does not answer. When a context ends the error is that of the context. A
// batch returns an error for each key, in the order of its keys.
//
// Calls that change nothing when they are made twice are made again when the connection to the master ends before the answer;
// so a restart of the master is noticed only by calls that find it down.
package client

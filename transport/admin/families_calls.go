package admin

import "github.com/mooncake-go/mooncake-master/transport/rpc"

// callFamily is a group of counters of the released masters and the calls that make it up.
type callFamily struct {
	name  string // between "master_" and "_requests_total"
	batch bool   // has partial successes and items too
	calls []string
	// perItem lists batch calls that count here as so many single ones.
	perItem []string
	// whole lists batch calls that count here as one request, which fails if anything in it does.
	whole []string
	used  bool // printed once it is not 0
}

var callFamilies = []callFamily{
	{name: "exist_key", calls: []string{"ExistKey"}},
	{name: "put_start", calls: []string{"PutStart", "UpsertStart"}},
	{name: "put_end", calls: []string{"PutEnd", "UpsertEnd"}},
	{name: "put_revoke", calls: []string{"PutRevoke", "UpsertRevoke"}},
	{name: "get_replica_list", calls: []string{"GetReplicaList"}},
	{name: "get_replica_list_by_regex", calls: []string{"GetReplicaListByRegex"}},
	{name: "remove", calls: []string{"Remove"}, perItem: []string{"BatchRemove"}},
	{name: "remove_by_regex", calls: []string{"RemoveByRegex"}},
	{name: "remove_all", calls: []string{"RemoveAll"}},
	{name: "mount_segment", calls: []string{"MountSegment"}},
	{name: "unmount_segment", calls: []string{"UnmountSegment", "GracefulUnmountSegment"}},
	{name: "remount_segment", calls: []string{"ReMountSegment"}},
	{name: "ping", calls: []string{"Ping"}},
	{name: "copy_start", calls: []string{"CopyStart", "DynamicReplicaCopyStart"}},
	{name: "copy_end", calls: []string{"CopyEnd", "DynamicReplicaCopyEnd"}},
	{name: "copy_revoke", calls: []string{"CopyRevoke", "DynamicReplicaCopyRevoke"}},
	{name: "move_start", calls: []string{"MoveStart"}},
	{name: "move_end", calls: []string{"MoveEnd"}},
	{name: "move_revoke", calls: []string{"MoveRevoke"}},
	{name: "evict_disk_replica", calls: []string{"EvictDiskReplica", "EvictDiskReplicaIfCurrent"}, whole: []string{"BatchEvictDiskReplica"}},
	{name: "create_copy_task", calls: []string{"CreateCopyTask"}},
	{name: "create_move_task", calls: []string{"CreateMoveTask"}},
	{name: "update_task", calls: []string{"MarkTaskToComplete"}},
	{name: "query_task", calls: []string{"QueryTask"}},
	{name: "fetch_tasks", calls: []string{"FetchTasks"}},
	{name: "batch_exist_key", batch: true, calls: []string{"BatchExistKey"}},
	{name: "batch_query_ip", batch: true, calls: []string{"BatchQueryIp"}},
	{name: "batch_replica_clear", batch: true, calls: []string{"BatchReplicaClear"}},
	{name: "batch_get_replica_list", batch: true, calls: []string{"BatchGetReplicaList"}},
	{name: "batch_put_start", batch: true, calls: []string{"BatchPutStart", "BatchUpsertStart"}},
	{name: "batch_put_end", batch: true, calls: []string{"BatchPutEnd", "BatchUpsertEnd"}},
	{name: "batch_put_revoke", batch: true, calls: []string{"BatchPutRevoke", "BatchUpsertRevoke"}},
	{name: "mount_nof_segment", calls: []string{"MountNoFSegment"}, used: true},
	{name: "remount_nof_segment", calls: []string{"ReMountNoFSegment"}, used: true},
	{name: "unmount_nof_segment", calls: []string{"UnmountNoFSegment"}, used: true},
}

// sum adds the counters of the family's calls up. A batch of nothing counts as failed, as in the released
// masters.
func (f *callFamily) sum(calls map[string]rpc.Counters) rpc.Counters {
	var total rpc.Counters
	for _, name := range f.calls {
		c := calls[name]
		total.Requests += c.Requests
		total.Failures += c.Failures + c.Empty
		total.PartialSuccesses += c.PartialSuccesses
		total.Items += c.Items
		total.FailedItems += c.FailedItems
	}
	for _, name := range f.perItem {
		total.Requests += calls[name].Items
		total.Failures += calls[name].FailedItems
	}
	for _, name := range f.whole {
		total.Requests += calls[name].Requests
		total.Failures += calls[name].Failures + calls[name].PartialSuccesses
	}
	return total
}

// counters are the families of the group.
func (f *callFamily) counters() []family {
	field := func(suffix, what string, get func(*rpc.Counters) uint64) family {
		one := family{name: "master_" + f.name + "_" + suffix, help: f.name + ": " + what, kind: counter, value: func(r *reading) float64 {
			c := f.sum(r.calls)
			return float64(get(&c))
		}}
		if f.used {
			return whenUsed(one)
		}
		return one
	}
	out := []family{
		field("requests_total", "requests handled", func(c *rpc.Counters) uint64 { return c.Requests }),
		field("failures_total", "requests that failed as a whole", func(c *rpc.Counters) uint64 { return c.Failures }),
	}
	if f.batch {
		out = append(out,
			field("partial_successes_total", "requests that failed in part", func(c *rpc.Counters) uint64 { return c.PartialSuccesses }),
			field("items_total", "items in all requests", func(c *rpc.Counters) uint64 { return c.Items }),
			field("failed_items_total", "items that failed", func(c *rpc.Counters) uint64 { return c.FailedItems }))
	}
	return out
}

// callCounters are the families of all groups.
func callCounters() []family {
	var out []family
	for i := range callFamilies {
		out = append(out, callFamilies[i].counters()...)
	}
	return out
}

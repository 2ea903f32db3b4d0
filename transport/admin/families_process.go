package admin

import "slices"

// rpcFamilies are about the listener of the clients.
var rpcFamilies = []family{
	{name: "mooncake_rpc_connections", help: "open RPC connections", kind: gauge, value: func(r *reading) float64 { return float64(r.listener.Open) }},
	{name: "mooncake_rpc_connections_total", help: "RPC connections accepted", kind: counter, value: func(r *reading) float64 { return float64(r.listener.Accepted) }},
	{name: "mooncake_rpc_read_bytes_total", help: "bytes of requests", kind: counter, value: func(r *reading) float64 { return float64(r.listener.BytesRead) }},
	{name: "mooncake_rpc_written_bytes_total", help: "bytes of replies", kind: counter, value: func(r *reading) float64 { return float64(r.listener.BytesWritten) }},
	{name: "mooncake_rpc_panics_total", help: "requests that ended in a panic of this program", kind: counter, value: func(r *reading) float64 { return float64(r.listener.Panics) }},
	{name: "mooncake_rpc_refused_frames_total", help: "requests that could not be served, by reason", kind: counter, labels: []string{"reason"}, each: func(r *reading, emit func(float64, ...string)) {
		byReason(r.listener.Refused, emit)
	}},
}

// processFamilies are about this process.
var processFamilies = slices.Concat(from014(
	family{name: "mooncake_build_info", help: "protocol version and version of this program", kind: gauge, labels: []string{"version", "display_version"}, each: func(r *reading, emit func(float64, ...string)) {
		emit(1, protocolVersion, r.version)
	}},
	family{name: "mooncake_process_rss_bytes", help: "resident memory of this process, in bytes", kind: gauge, value: func(r *reading) float64 { return r.process.rss }},
	family{name: "mooncake_process_rss_peak_bytes", help: "most of it so far", kind: gauge, value: func(r *reading) float64 { return r.process.peak }},
	family{name: "mooncake_process_rss_anon_bytes", help: "its anonymous part", kind: gauge, value: func(r *reading) float64 { return r.process.anon }},
	family{name: "mooncake_process_rss_file_bytes", help: "its part backed by files", kind: gauge, value: func(r *reading) float64 { return r.process.file }},
	family{name: "mooncake_process_rss_shmem_bytes", help: "its shared part", kind: gauge, value: func(r *reading) float64 { return r.process.shmem }},
	family{name: "mooncake_process_vsize_bytes", help: "address space of this process, in bytes", kind: gauge, value: func(r *reading) float64 { return r.process.vsize }},
	family{name: "mooncake_process_swap_bytes", help: "swapped memory of this process, in bytes", kind: gauge, value: func(r *reading) float64 { return r.process.swap }},
))

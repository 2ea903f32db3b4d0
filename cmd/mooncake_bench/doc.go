// Command mooncake_bench loads a Mooncake Store master, this one or the original, and says
// what an operation costs: throughput, latency, processor time and memory of the master.
//
//	mooncake_bench run     --addr HOST:PORT --pid PID --work exist:1,put:32 --conns 1,8
//	mooncake_bench compare --a "CMD..." --b "CMD..." --work get:128 --rounds 5 --pin 0
//	mooncake_bench table   --theirs "CMD..." single memory-1m
//	mooncake_bench report  FILES...
//	mooncake_bench echo    --rpc_port PORT
//
// The parts, in the order in which one run passes through them: a point (workload.go) says
// what is asked for; nodes (nodes.go) mount segments that nobody ever touches and ping; a load
// (load.go) keeps operations in flight over raw connections (conn.go, poll_linux.go), with
// requests encoded once and patched in place (request.go) and replies read just far enough to
// see the outcome of each key (reply.go); a recorder (measure.go) counts what ends within the
// measured window, and probes of the master's process (probe.go) are taken at its edges.
//
// A table is made of rows (rows.go) of trials (trial.go), in which sides take turns, and of the
// limits that their figures are held against (verdict.go).
//
// Invariant: what is reported belongs to one window of time. Operations count when they end
// in it, processor time is read at its edges by the thread that moves the edge, and in open
// loop a latency runs from the moment the operation was meant to start, sent or not.
//
// One thread drives a load, so that the state of loads and connections needs no locks; the
// loads of a run share only the window and the counters of keys, which are atomic.
package main

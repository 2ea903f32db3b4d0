// Package connector is the host's side of the connectors: it finds the executable of a type,
// starts it, speaks the contract of proto/connector/v1 with it, watches over it and starts it
// again, and hands what it says to core/policy as a policy.Source.
//
// Invariants: at most one process at a time; it is dead before the next one starts and before
// Close returns; on Linux the kernel kills it when this process ends in whatever way. Every
// call to a process that dies ends with policy.ErrInterrupted. A stream that is silent for
// longer than the contract allows is a fault like a crash.
//
// Locks: Connector.mu guards state and the current session and is never held across a call to
// the process. One goroutine, the supervisor, starts and ends processes; it is locked to its
// thread, because the kernel ties the death signal to the thread that started the child.
package connector

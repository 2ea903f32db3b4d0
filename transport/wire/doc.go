// Package wire is the table of the master's calls: one row per RPC with its name, function
// id, argument struct and result type, and since which release each form exists.
//
// Request structs have one field per argument, in argument order; results are the domain
// types of core, so that a handler fills in what the codec writes. Types that only the
// protocol knows live here beside their calls. Function ids, type literals and hashes are all
// computed from names and types, never typed in.
//
// Releases of the protocol stand side by side in a row: a new release adds a form to the rows
// that changed, not another table.
//
// Rows are immutable after start-up and carry no lock.
package wire

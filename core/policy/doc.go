// Package policy turns documents into quotas: it takes what a Source says, checks it, works out
// what changes, and has an Enforcer put it in force by one call. The other way, a change asked
// for by an operator is edited into the document, saved at the source, and only then put in
// force.
//
// Invariants: the policy in force was, as a whole, a valid document of the source. Whatever
// happens to the source, the last one stays in force. An older document never replaces a newer
// one: everything Manager does with the source happens in turn, and once it has loaded or saved
// anything itself, an event of the watch is only a hint to load again, because it may have been
// read before.
//
// Locks: Manager.turn is held across calls to the source and to the enforcer; Manager.mu guards
// the status and is never held across either.
package policy

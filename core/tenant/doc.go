// Package tenant keeps who may store how much: the names of tenants, one account per tenant,
// the arithmetic that turns requested quotas into effective ones, and the ledger each object
// carries.
//
// Invariant: at every quiet moment an account's charge is the sum of the ledgers of the
// tenant's objects and of the tasks that charged it; it never passes 2^63-1. An account once
// created stays for ever, so that a handle kept by an object survives the deletion and
// re-creation of the policy.
//
// Locks: Book has one mutex, for policies and recomputation. Looking an account up, charging
// it and releasing take no lock. Nothing outside this package is called with the mutex held
// but the function given to Recompute.
package tenant

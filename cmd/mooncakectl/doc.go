// Command mooncakectl is the operator's tool of a Mooncake Store: tenants and their quotas,
// whole policies with a look at what they would do, connectors, one's own among them, and the values themselves.
//
// It is a client of the master's admin interface, and of the pool for put, get, stat, ls and rm; what it says about documents comes from
// the master's own parser, and connectors are run by the master's own host code. Results go to
// standard output, everything else to standard error; the exit statuses in exit.go are part of
// the interface. It keeps no state.
package main

// Package admin is everything this master says over HTTP: the admin interface and the metrics
// on one port, and the metadata server, in which transfer engines find each other, on another.
//
// Bodies, status codes and the order of checks are those of the released masters to the byte,
// since scripts depend on them; json.go and lenient.go print and read JSON as they do.
//
// Invariant: nothing here keeps a number that the state holds too. Metrics and pages are made
// from the state when they are asked for, through the small interfaces of service.go.
// Locks: Reporter has one for the base of its rates, Store one for its map; none is held while
// the state is read. Server and RemoteCleaner wait for their goroutines when they are closed.
package admin

// Package rpc carries the calls of package wire over coro_rpc, the framing of the Mooncake
// Store protocol: plain TCP, a 20-byte head before each request, a 16-byte head before each
// reply.
//
// A Server reads frames, finds the handler by function id, and answers the requests of one
// connection in their order. What a connection does with bytes (session.process) is separate
// from where the bytes come from, of which there are two ways:
//
//   - On Linux an event loop (loop_linux.go) serves all connections on one goroutine: it waits
//     with epoll, then goes through every connection that is ready, with one read and one write
//     for all requests that have come. What takes long, by the length of its body or by its
//     nature (Slow), goes to workers, one at a time per connection, and only that connection
//     waits. A loop that is saturated gets a second one beside it and gives half of its busy
//     connections away (group_linux.go). A connection at rest holds no buffers.
//   - Elsewhere, with Options.Portable, and for listeners that are not plain sockets, each
//     connection has a goroutine (conn.go).
//
// A Client sends requests of many goroutines over one connection and matches replies by
// sequence number.
//
// Invariants: a request that has been read completely is answered, also while the server
// shuts down; nothing is allocated because a peer announced it, only because it arrived; no
// input and no handler can end the process.
//
// Locks: Server.mu guards the sets of listeners and connections and the start of the first
// loop; what is called while it is held are methods of net that do not wait, and the making
// and waking of pollers. group.mu guards how many loops run, loop.mu the connections that
// come to a loop from elsewhere, a lane's lock its queue; they are taken in this order. All
// else about a connection belongs to its loop, or to the worker that the loop has lent it to,
// and needs no lock. Handlers are registered before Serve and looked up without a lock.
// Client.mu guards the calls in flight, Client.sending the order of writes; sending is taken
// first.
package rpc

// Package rpc carries the calls of package wire over coro_rpc, the framing of the Mooncake
// Store protocol: plain TCP, a 20-byte head before each request, a 16-byte head before each
// reply.
//
// A Server reads frames, finds the handler by function id, and answers the requests of one
// connection in their order. What a connection does with bytes (session.process) is separate
// from where the bytes come from (the goroutine per connection in conn.go), so that another
// way of waiting for bytes needs no other framing. A Client sends requests of many
// goroutines over one connection and matches replies by sequence number.
//
// Invariants: a request that has been read completely is answered, also while the server
// shuts down; nothing is allocated because a peer announced it, only because it arrived; no
// input and no handler can end the process.
//
// Locks: Server.mu guards the sets of listeners and connections, and nothing is called while
// it is held but methods of net. Handlers are registered before Serve and looked up without a
// lock. Client.mu guards the calls in flight, Client.sending the order of writes; sending is
// taken first.
package rpc

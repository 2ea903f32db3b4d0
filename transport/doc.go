// Package transport joins the wire to the core: it registers a handler for every call of the
// protocol and translates between the types of transport/wire and the methods of core.Master.
//
// Handlers run on the goroutine that serves the connection. Strings of a request share the
// memory of its frame; core clones what it keeps.
package transport

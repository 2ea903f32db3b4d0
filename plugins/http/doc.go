// Package http is a connector that keeps the policy document behind an HTTP address: an object
// store, a configuration service, a file server. It is written against package sdk only, and
// served by the executable mooncake-connector-http.
//
// Reading: GET with If-None-Match, now and then without, because not every server's ETag
// changes with every change. A server that answers "Prefer: wait" (RFC 7240) is asked again at
// once and answers when there is something new; others are asked every few seconds, with
// jitter. The revision of a document is its ETag and a hash of its bytes.
//
// Saving: PUT with If-Match, so the server decides who was first. Without a strong ETag nobody
// can, and a save is refused rather than somebody else's change overwritten.
//
// Invariant: only a complete answer with status 200 is a document. An answer that was cut
// short, that is a login page, that is compressed or without an end is never taken for one.
// Locks: Connector.mu guards the configuration; Connector.saving is held during a Save, so that
// two of ours don't meet at the server.
package http

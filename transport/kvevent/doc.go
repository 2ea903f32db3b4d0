// Package kvevent publishes what becomes readable and what no longer is, for indexers that route
// requests to where their data lies. The protocol is that of release 0.3.14: ZeroMQ PUB, three
// frames, MessagePack; docs/kv-events.md describes it for those who subscribe.
//
// Publisher is what core calls, under the locks of its shards: a call copies its arguments into a
// queue and returns. One goroutine takes batches from the queue, encodes each once and hands it to
// every subscriber; a subscriber has a queue of its own, which a goroutine of its own writes out,
// so that one that does not read holds up nobody.
//
// What is lost shows: an event that the full queue drops takes a sequence number with it. What is
// dropped for one slow subscriber only is missing in its sequence.
//
// Locks: Publisher.mu guards the queue and hub.mu who subscribes; neither is held while anything
// is written, and neither while the other is taken.
package kvevent

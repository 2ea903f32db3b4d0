// Package etcd is the connector that keeps the policy document under a key of an etcd cluster.
// It is written against package sdk and the etcd client only, like anybody's connector.
//
// The key is mooncake-store/<cluster id>/tenant_quota_policy. Where it does not exist at the
// start the policy is empty; if it vanishes later the document is unavailable, never empty.
//
// Reading: a linearizable read at revision R, then a watch from R+1 that only a member with a
// leader serves. Whatever ends the watch (a lost connection, a lost quorum, compaction, an
// expired token) is followed by a new read, so nothing is missed and the same revision is never
// asked for twice. The stream is asked for a sign of life every five seconds, and the key is read
// every ten, whatever the watch says. After a failure the pauses grow, with full jitter, to two
// seconds while a member accepts connections (four when the source refuses us) and to 30 seconds
// while none does; the first connection that succeeds ends them.
//
// Saving is a compare-and-swap on the revision that was read. A save whose answer was lost is
// repeated until it is known what became of it.
//
// The revision of a document is its modification revision and a part of the SHA-256 of its
// content: a cluster restored from a backup counts the same numbers again.
//
// Locks: Connector.mu guards which link is in use; link.turn is held while a client is made.
package etcd

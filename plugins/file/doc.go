// Package file is the connector that keeps the policy document in a file. It is written
// against package sdk only, like anybody's connector.
//
// Reading: the folder is watched, not the file, because editors replace files; every folder
// on the way through symbolic links is watched too, so that the swap of a Kubernetes ConfigMap
// is seen. A burst of events is waited out for 50 ms, 100 ms at most. A look every two seconds
// stands in where the system tells nothing (network file systems). The revision of a document
// is the SHA-256 of its content. A file that somebody has open for writing is not told: the
// beginning of a document may be a valid one that takes tenants away. It counts once it is closed;
// where nobody can tell whether it is, once it has not changed for a second.
//
// Saving (save.go) never loses what somebody else wrote to the file meanwhile.
//
// Invariant: a file that came out of the policy's place is removed only if its content is
// known and nobody is writing to it. Locks: Connector.mu guards the configuration;
// Connector.io is held while the file is read or saved, so that a save never waits for our own
// reader; across processes a flock on the folder keeps two savers apart.
package file

// Package tier keeps what a master knows of its clients' own disks: which clients have one, what each
// of them is asked to write to it and to bring back from it, how often objects are read that lie
// only there, and which of those are to be tried again. It knows no objects: what it is asked about
// them it is told by name.
//
// Locks are leaves: each Disk, the Sketch and the Candidates have one, and nothing is called while it is
// held. Of several disks' locks, which only Disks.Cancel takes, the one of the smaller client id
// comes first.
package tier

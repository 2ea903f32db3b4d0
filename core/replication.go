package core

import "github.com/mooncake-go/mooncake-master/core/object"

// replicationLost is told of a copy or move that has timed out or whose object has gone.
func (m *Master) replicationLost(*keeper, *object.Shard, *object.Object, *object.Work) {}

// heat notes that an object was read. It is called without locks, if dynamic replication is on.
func (m *Master) heat(*keeper, string, *object.ReplicaList) {}

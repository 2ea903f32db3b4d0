package core

import "github.com/mooncake-go/mooncake-master/core/object"

// The media of events: a replica lies in memory, or it doesn't.
const (
	MediumCPU  = "cpu"
	MediumDisk = "disk"
)

// Events is told where objects can be read. It is called with the object's shard locked, so that what it
// is told about one object is in order: it must return at once, take no lock of the core's, and copy
// the strings that it keeps. A medium is MediumCPU or MediumDisk.
type Events interface {
	// Stored tells that an object has a complete replica on a medium: the first one there, or a new
	// value.
	Stored(tenantName, key, group, medium string)
	// Removed tells that an object's last complete replica on a medium has gone, or is being overwritten.
	Removed(tenantName, key, group, medium string)
	// Cleared tells that RemoveAll has left a tenant nothing of what it had.
	Cleared(tenantName string)
}

// media is a set of media.
type media uint8

const (
	inMemory media = 1 << iota
	onDisks
)

// media returns where an object has complete replicas, or nothing when nobody wants to know. The shard
// is locked.
func (m *Master) media(sh *object.Shard, o *object.Object) media {
	if m.events == nil {
		return 0
	}
	return mediaOf(sh, o)
}

func mediaOf(sh *object.Shard, o *object.Object) (on media) {
	all := sh.Replicas(o)
	for i := range all {
		switch r := &all[i]; {
		case !isComplete(r):
		case r.Kind == object.KindMemory:
			on |= inMemory
		default:
			on |= onDisks
		}
	}
	return on
}

// moved tells what has changed since an object had its complete replicas on the given media. The object
// is still in its table, and its shard locked.
func (m *Master) moved(k *keeper, sh *object.Shard, o *object.Object, before media) {
	if m.events == nil {
		return
	}
	now := mediaOf(sh, o)
	m.tell(k, sh, o, before&^now, m.events.Removed)
	m.tell(k, sh, o, now&^before, m.events.Stored)
}

// stored tells of a write that has ended. The shard is locked.
func (m *Master) stored(k *keeper, sh *object.Shard, o *object.Object) {
	if m.events != nil {
		m.tell(k, sh, o, mediaOf(sh, o), m.events.Stored)
	}
}

func (m *Master) tell(k *keeper, sh *object.Shard, o *object.Object, on media, f func(tenantName, key, group, medium string)) {
	if on == 0 {
		return
	}
	key, group := sh.Key(o), sh.GroupID(o)
	if on&inMemory != 0 {
		f(k.name, key, group, MediumCPU)
	}
	if on&onDisks != 0 {
		f(k.name, key, group, MediumDisk)
	}
}

package policy

import (
	"time"

	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// memory is how long a change saved by us is watched for being undone by somebody who had read
// the document before.
const memory = 10 * time.Minute

// edits remembers the changes saved by us. It is used with Manager.turn held.
type edits map[string]*edit

// edit is a tenant whose quota we saved: its value now, and those it had before, 0 for none.
type edit struct {
	value  uint64
	former map[uint64]bool
	at     time.Time
}

// remember notes that a save of ours changed a quota.
func (e edits) remember(name string, from, to uint64, now time.Time) {
	known := e[name]
	if known == nil {
		known = &edit{former: map[uint64]bool{}}
		e[name] = known
	}
	known.former[from] = true
	delete(known.former, to)
	known.value, known.at = to, now
}

// undone finds the changes of ours that a document takes back: a tenant has a quota again that
// it had before. That may be meant; more likely somebody saved a copy read before. Each is
// found once. A tenant that has another quota yet was changed on purpose, and is forgotten. What
// the change of ours does that is being made, if any, is none of that.
func (e edits) undone(set []tenant.Policy, now time.Time, making *change) []Change {
	if len(e) == 0 {
		return nil
	}
	quota := make(map[string]uint64, len(e))
	for _, p := range set {
		if _, ours := e[p.Name]; ours {
			quota[p.Name] = p.Quota
		}
	}
	var lost []Change
	for name, known := range e {
		switch is := quota[name]; {
		case now.Sub(known.at) > memory:
			delete(e, name)
		case is == known.value, making != nil && making.name == name && making.quota == is:
		default:
			if known.former[is] {
				lost = append(lost, Change{Name: name, Old: known.value, New: is})
			}
			delete(e, name)
		}
	}
	return lost
}

// settle forgets the changes of ours that a document saved on purpose takes back.
func (e edits) settle(set []tenant.Policy) {
	quota := make(map[string]uint64, len(e))
	for _, p := range set {
		if _, ours := e[p.Name]; ours {
			quota[p.Name] = p.Quota
		}
	}
	for name, known := range e {
		if quota[name] != known.value {
			delete(e, name)
		}
	}
}

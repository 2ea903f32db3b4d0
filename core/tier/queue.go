package tier

// Item names an object of Size bytes that a client is to write to its disk, or to bring back from
// it.
type Item struct {
	Tenant, Key string
	Size        int64 // bytes
}

type name struct{ tenant, key string }

// queue holds items in the order they came, each object once.
type queue struct {
	items []Item
	at    map[name]int // where in items
	holes int          // items that have been taken out again; they have Size hole
	first int          // all before are holes
}

const hole = -1

func (q *queue) len() int { return len(q.items) - q.holes }

// add appends an item unless the object is there already, and reports whether it has.
func (q *queue) add(i Item) bool {
	n := name{i.Tenant, i.Key}
	if _, there := q.at[n]; there {
		return false
	}
	if q.at == nil {
		q.at = make(map[name]int)
	}
	q.at[n] = len(q.items)
	q.items = append(q.items, i)
	return true
}

// renew replaces an item whose object is there already, and reports whether it is.
func (q *queue) renew(i Item) bool {
	at, there := q.at[name{i.Tenant, i.Key}]
	if there {
		q.items[at].Size = i.Size
	}
	return there
}

func (q *queue) has(tenant, key string) bool {
	_, there := q.at[name{tenant, key}]
	return there
}

// remove takes an object out and reports whether it was there.
func (q *queue) remove(tenant, key string) bool {
	n := name{tenant, key}
	at, there := q.at[n]
	if !there {
		return false
	}
	delete(q.at, n)
	q.items[at] = Item{Size: hole}
	q.holes++
	if q.holes > 16 && q.holes > len(q.items)/2 {
		q.pack()
	}
	return true
}

// pack closes the holes.
func (q *queue) pack() {
	kept := q.items[:0]
	for _, i := range q.items {
		if i.Size != hole {
			q.at[name{i.Tenant, i.Key}] = len(kept)
			kept = append(kept, i)
		}
	}
	clear(q.items[len(kept):])
	q.items, q.holes, q.first = kept, 0, 0
}

// takeAll empties the queue and returns what was in it.
func (q *queue) takeAll() []Item {
	if q.holes > 0 {
		q.pack()
	}
	all := q.items
	*q = queue{}
	return all
}

// take takes up to so many items out, the oldest first.
func (q *queue) take(most int) []Item {
	var some []Item
	for len(some) < most && q.len() > 0 {
		for q.items[q.first].Size == hole {
			q.first++
		}
		i := q.items[q.first]
		some = append(some, i)
		q.remove(i.Tenant, i.Key)
	}
	return some
}

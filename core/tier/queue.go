package tier

import (
	"container/heap"
	"strings"
)

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
	q.items, q.holes = kept, 0
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

// sorted holds items by tenant and key, each object once.
type sorted struct {
	items []Item
	at    map[name]int
}

func (s *sorted) add(i Item) bool {
	if _, there := s.at[name{i.Tenant, i.Key}]; there {
		return false
	}
	heap.Push(s, i)
	return true
}

func (s *sorted) remove(tenant, key string) bool {
	at, there := s.at[name{tenant, key}]
	if there {
		heap.Remove(s, at)
	}
	return there
}

// take takes out up to so many items, the smallest first.
func (s *sorted) take(most int) []Item {
	var some []Item
	for len(some) < most && len(s.items) > 0 {
		some = append(some, heap.Pop(s).(Item))
	}
	return some
}

func (s *sorted) Len() int { return len(s.items) }

func (s *sorted) Less(i, j int) bool {
	a, b := &s.items[i], &s.items[j]
	if c := strings.Compare(a.Tenant, b.Tenant); c != 0 {
		return c < 0
	}
	return a.Key < b.Key
}

func (s *sorted) Swap(i, j int) {
	s.items[i], s.items[j] = s.items[j], s.items[i]
	s.place(i)
	s.place(j)
}

func (s *sorted) place(i int) { s.at[name{s.items[i].Tenant, s.items[i].Key}] = i }

func (s *sorted) Push(x any) {
	if s.at == nil {
		s.at = make(map[name]int)
	}
	s.items = append(s.items, x.(Item))
	s.place(len(s.items) - 1)
}

func (s *sorted) Pop() any {
	last := len(s.items) - 1
	i := s.items[last]
	delete(s.at, name{i.Tenant, i.Key})
	s.items[last] = Item{}
	s.items = s.items[:last]
	return i
}

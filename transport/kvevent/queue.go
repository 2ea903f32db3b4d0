package kvevent

// kind is what an event says.
type kind uint8

const (
	stored kind = iota
	removed
	cleared
)

// event is one that waits to be published.
type event struct {
	kind   kind
	tenant string
	key    string
	group  string
	medium string
}

// queue is a ring of events, oldest first.
type queue struct {
	ring  []event
	first int
	len   int
}

func (q *queue) push(e event) {
	if q.len == len(q.ring) {
		larger := make([]event, max(64, 2*len(q.ring)))
		n := copy(larger, q.ring[q.first:])
		copy(larger[n:], q.ring[:q.first])
		q.ring, q.first = larger, 0
	}
	q.ring[(q.first+q.len)%len(q.ring)] = e
	q.len++
}

func (q *queue) pop() event {
	e := q.ring[q.first]
	q.ring[q.first] = event{}
	q.first = (q.first + 1) % len(q.ring)
	q.len--
	return e
}

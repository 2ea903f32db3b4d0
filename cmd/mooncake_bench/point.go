package main

import "strconv"

// point is one measurement that is asked for.
type point struct {
	work  work
	conns int
}

// String returns for example "exist:128 x8".
func (p point) String() string { return p.work.String() + " x" + strconv.Itoa(p.conns) }

// points are all combinations, in the order in which they are measured.
func (s *settings) points() []point {
	var all []point
	for _, w := range s.works {
		for _, c := range s.conns {
			all = append(all, point{w, c})
		}
	}
	return all
}

// setting is what a result says about how it was got.
type setting struct {
	Work        string  `json:"work"`
	Mix         string  `json:"mix,omitempty"`
	Beside      string  `json:"beside,omitempty"`
	Conns       int     `json:"conns"`
	Outstanding int     `json:"outstanding"`
	Threads     int     `json:"threads"`
	Rate        float64 `json:"rate,omitempty"` // absent: closed loop
	WarmSeconds float64 `json:"warmup_s"`
	Keys        int64   `json:"keys"` // stored before, over all tenants
	KeyLength   int     `json:"key_length"`
	ObjectSize  uint64  `json:"object_size"`
	Tenants     int     `json:"tenants"`
	Capacity    uint64  `json:"capacity"` // bytes of all segments
	Client      string  `json:"client"`
	Pin         *int    `json:"pin,omitempty"` // absent: not bound to a core
}

func (s *settings) setting(p point) setting {
	out := setting{
		Work: p.work.String(), Conns: p.conns, Outstanding: s.outstanding, Threads: s.threads, Rate: s.rate,
		Beside: joined(s.beside), WarmSeconds: s.warm.Seconds(), Keys: s.filled(p.work), KeyLength: s.keyLength,
		ObjectSize: s.size, Tenants: s.tenants, Capacity: uint64(s.segments) * s.segmentSize, Client: s.dialect.release.String(),
	}
	if p.work.op == opMixed {
		out.Mix = s.mix.String()
	}
	if p.work.op == opRemove {
		out.WarmSeconds = 0
	}
	if s.pin >= 0 {
		pin := s.pin
		out.Pin = &pin
	}
	return out
}

// title is the short name of a point in tables and charts.
func (s setting) title() string {
	t := s.Work + " x" + strconv.Itoa(s.Conns)
	if s.Outstanding > 1 {
		t += "/" + strconv.Itoa(s.Outstanding)
	}
	if s.Tenants > 1 {
		t += " t" + strconv.Itoa(s.Tenants)
	}
	if s.Rate > 0 {
		t += " @" + strconv.FormatFloat(s.Rate, 'f', -1, 64)
	}
	if s.Beside != "" {
		t += " beside " + s.Beside
	}
	return t
}

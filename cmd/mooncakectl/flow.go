package main

import (
	"fmt"
	"time"
)

// flow shows how fast a value goes through it, to a person who waits.
type flow struct {
	t           *tool
	what        string
	total, done uint64 // total 0 = unknown
	begun, said time.Time
}

const (
	flowPatience = time.Second // before something is shown
	flowPeriod   = 200 * time.Millisecond
)

// flow begins to show something of so many bytes, 0 if that is not known.
func (t *tool) flow(what string, total uint64) *flow {
	return &flow{t: t, what: printable(what), total: total, begun: t.now()}
}

// Write counts.
func (f *flow) Write(b []byte) (int, error) {
	f.done += uint64(len(b))
	if !f.t.live {
		return len(b), nil
	}
	now := f.t.now()
	elapsed := now.Sub(f.begun)
	if elapsed < flowPatience || now.Sub(f.said) < flowPeriod {
		return len(b), nil
	}
	f.said = now
	of := size(f.done)
	if f.total > 0 {
		of = fmt.Sprintf("%d%% of %s", 100*f.done/f.total, size(f.total))
	}
	f.t.progress("%s: %s, %s/s", f.what, of, size(uint64(float64(f.done)/elapsed.Seconds())))
	return len(b), nil
}

// end takes the line away.
func (f *flow) end() {
	if !f.said.IsZero() {
		f.t.progress("")
		f.said = time.Time{}
	}
}

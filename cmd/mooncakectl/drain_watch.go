package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
)

// How often a job is looked at, and how long a line for a log stays the last one while only numbers
// change.
const (
	watchPeriod = 500 * time.Millisecond
	linePeriod  = 10 * time.Second
)

// follow watches a job until it is over. When the user interrupts, the job goes on.
func (t *tool) follow(ctx context.Context, id string) (*drainJob, error) {
	shown := t.progressOf()
	defer shown.end()
	patience := time.Time{}
	for {
		job, err := t.job(ctx, id)
		var f *failure
		switch {
		case ctx.Err() != nil:
			return nil, t.detached(id)
		case errors.As(err, &f) && f.code == exitUnreachable:
			// A job outlives the connection; it does not outlive the master.
			if now := t.now(); patience.IsZero() {
				patience = now.Add(t.timeout)
			} else if now.After(patience) {
				return nil, f.hinting("the job may go on: mooncakectl drain watch %s", id)
			}
			shown.lost()
		case err != nil:
			return nil, err
		case job.over():
			shown.show(job)
			return job, nil
		default:
			patience = time.Time{}
			shown.show(job)
		}
		select {
		case <-ctx.Done():
			return nil, t.detached(id)
		case <-time.After(watchPeriod):
		}
	}
}

func (t *tool) detached(id string) error {
	return (&failure{code: exitInterrupted, text: "detached, the job goes on"}).
		hinting("to watch it again: mooncakectl drain watch %s; to end it: mooncakectl drain cancel %s", id, id)
}

// following shows how far a job has come.
type following interface {
	show(*drainJob)
	lost() // the master does not answer
	end()
}

func (t *tool) progressOf() following {
	switch {
	case t.json:
		return silent{}
	case t.live:
		return &bar{t: t}
	}
	return &lines{t: t}
}

type silent struct{}

func (silent) show(*drainJob) {}
func (silent) lost()          {}
func (silent) end()           {}

// bar is for a person at a terminal.
type bar struct {
	t   *tool
	bar *progressbar.ProgressBar
}

func (b *bar) show(j *drainJob) {
	if j.Total == 0 {
		b.t.progress("%s: looking for what is there", printable(strings.Join(j.Segments, ", ")))
		return
	}
	if b.bar == nil {
		b.t.progress("")
		b.bar = progressbar.NewOptions64(int64(j.Total),
			progressbar.OptionSetWriter(b.t.err), progressbar.OptionSetWidth(24), progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
			progressbar.OptionShowDescriptionAtLineEnd(), progressbar.OptionUseANSICodes(true),
			progressbar.OptionSetTheme(progressbar.Theme{Saucer: "=", SaucerHead: ">", SaucerPadding: " ", BarStart: "[", BarEnd: "]"}))
	}
	b.bar.ChangeMax64(int64(j.Total))
	b.bar.Describe(particulars(j))
	_ = b.bar.Set64(int64(j.done())) // what can't be written to a terminal is not missed
}

func (b *bar) lost() { b.t.progress("the master does not answer") }

func (b *bar) end() {
	if b.bar != nil {
		_ = b.bar.Exit()
	} else {
		b.t.progress("")
	}
}

// lines are for a log: one whenever the state of the job changes, and otherwise now and then.
type lines struct {
	t    *tool
	last drainJob
	at   time.Time
}

func (l *lines) show(j *drainJob) {
	now := l.t.now()
	changed := j.Status != l.last.Status || j.Canceling != l.last.Canceling
	if !changed && (now.Sub(l.at) < linePeriod || j.done() == l.last.done() && j.Active == l.last.Active && j.Blocked == l.last.Blocked) {
		return
	}
	l.last, l.at = *j, now
	l.t.note("%s %d/%d objects, %s", j.Status, j.done(), j.Total, particulars(j))
}

func (l *lines) lost() {
	if l.last.Status != "" {
		l.t.note("the master does not answer")
	}
	l.last.Status = ""
}

func (l *lines) end() {}

// particulars is what a progress bar does not show.
func particulars(j *drainJob) string {
	parts := []string{size(j.Bytes), fmt.Sprintf("%d moving", j.Active)}
	if j.Blocked > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", j.Blocked))
	}
	if j.Failed > 0 {
		parts = append(parts, plural(int(j.Failed), "failure"))
	}
	if j.Canceling {
		parts = append(parts, "being canceled")
	} else if eta := j.eta(); eta > 0 && !j.over() {
		parts = append(parts, "about "+eta.String()+" left")
	}
	return strings.Join(parts, ", ")
}

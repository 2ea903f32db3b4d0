package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/errcode"
)

const drainPath = "/api/v1/drain_jobs"

// drainJob is a job as the master shows it and this tool prints it.
type drainJob struct {
	ID          string   `json:"job_id"`
	Status      string   `json:"status_name"`
	Created     int64    `json:"created_at_ms_epoch"`
	Updated     int64    `json:"last_updated_at_ms_epoch"`
	Segments    []string `json:"segments"`
	Targets     []string `json:"target_segments"`
	Concurrency uint32   `json:"max_concurrency"`
	Succeeded   uint64   `json:"succeeded_units"`
	Failed      uint64   `json:"failed_units"`
	Blocked     uint64   `json:"blocked_units"`
	Active      uint64   `json:"active_units"`
	Bytes       uint64   `json:"migrated_bytes"`
	Total       uint64   `json:"total_units"`
	Remaining   uint64   `json:"remaining_units"`
	ActiveBytes uint64   `json:"active_bytes"`
	ActiveDone  uint64   `json:"active_bytes_done"`
	Canceling   bool     `json:"canceling"`
	Message     string   `json:"message"`
}

func (j *drainJob) over() bool {
	return j.Status == drain.Succeeded.String() || j.Status == drain.Failed.String() || j.Status == drain.Canceled.String()
}

// done is how many objects have left their segments.
func (j *drainJob) done() uint64 { return j.Total - min(j.Total, j.Remaining) }

// eta is how long the job still takes if it goes on as until now; zero if that can't be said.
func (j *drainJob) eta() time.Duration {
	if j.done() == 0 || j.Remaining == 0 || j.Updated <= j.Created {
		return 0
	}
	elapsed := time.Duration(j.Updated-j.Created) * time.Millisecond
	return time.Duration(float64(elapsed) * float64(j.Remaining) / float64(j.done())).Round(time.Second)
}

func (t *tool) drainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Move everything off segments, so that their clients can leave without a loss",
		Long: `Move everything off segments, so that their clients can leave without a loss. The master lets
nothing new onto the segments and moves what is there, or has their clients do so, a few objects at
a time.
A job goes on whether somebody watches it or not.`,
	}
	group(cmd)
	cmd.AddCommand(t.drainStart(), t.drainWatch(), t.drainStatus(), t.drainCancel(), t.drainList())
	return cmd
}

func (t *tool) drainStart() *cobra.Command {
	var targets []string
	concurrency, detach := uint32(drain.DefaultConcurrency), false
	cmd := &cobra.Command{
		Use:   "start SEGMENT...",
		Short: "Start a job, and watch it until it is over or you interrupt",
		Long: `Start a job, and watch it until it is over or you interrupt: the job goes on then, and
drain watch shows it again. An object that is leased, pinned hard or being written waits until
it is not; one that all other segments hold already is only dropped from the ones drained.`,
		Example: "  mooncakectl drain start 10.0.0.6:17812 --target 10.0.0.7:17812 --concurrency 16",
		Args:    takes(1, 1<<20),
		RunE: func(cmd *cobra.Command, args []string) error {
			if concurrency == 0 {
				return misused("--concurrency=0: want how many objects to move at a time, 1 or more")
			}
			body, err := json.Marshal(map[string]any{"segments": args, "target_segments": append([]string{}, targets...), "max_concurrency": concurrency})
			if err != nil {
				return err
			}
			var made struct {
				ID string `json:"job_id"`
			}
			if err := t.call(cmd.Context(), http.MethodPost, drainPath, body, &made); err != nil {
				return aboutDrain(strings.Join(args, ", "), err)
			}
			if detach {
				return t.showJob(cmd.Context(), made.ID)
			}
			t.note("job %s", made.ID)
			return t.watch(cmd.Context(), made.ID)
		},
	}
	cmd.Flags().StringArrayVar(&targets, "target", nil, "a segment to move to, may be given several times (default: the emptiest of all)")
	cmd.Flags().Uint32Var(&concurrency, "concurrency", concurrency, "how many objects to move at a time")
	cmd.Flags().BoolVar(&detach, "detach", false, "don't watch the job")
	return cmd
}

func (t *tool) drainWatch() *cobra.Command {
	return &cobra.Command{
		Use:   "watch JOB",
		Short: "Watch a job until it is over or you interrupt",
		Args:  takes(1, 1),
		RunE:  func(cmd *cobra.Command, args []string) error { return t.watch(cmd.Context(), args[0]) },
	}
}

func (t *tool) drainStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status JOB",
		Short: "Show one job",
		Args:  takes(1, 1),
		RunE:  func(cmd *cobra.Command, args []string) error { return t.showJob(cmd.Context(), args[0]) },
	}
}

func (t *tool) drainCancel() *cobra.Command {
	detach := false
	cmd := &cobra.Command{
		Use:   "cancel JOB",
		Short: "End a job: no more is moved, and its segments take new objects again",
		Long: `End a job: no more is moved, and its segments take new objects again once the moves under way
have ended. What has been moved stays where it is.`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.call(cmd.Context(), http.MethodPost, jobPath(drainPath+"/cancel", args[0])+"&when_idle=true", nil, new(any)); err != nil {
				return aboutDrain(args[0], err)
			}
			if detach {
				return t.showJob(cmd.Context(), args[0])
			}
			job, err := t.follow(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return t.printJobs([]drainJob{*job})
		},
	}
	cmd.Flags().BoolVar(&detach, "detach", false, "don't wait until the moves under way have ended")
	return cmd
}

func (t *tool) drainList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the jobs that the master remembers",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			jobs := []drainJob{}
			if err := t.data(cmd.Context(), http.MethodGet, drainPath, nil, &jobs); err != nil {
				return err
			}
			if t.json {
				return t.printJSON(jobs)
			}
			return t.printJobs(jobs)
		},
	}
}

func jobPath(path, id string) string { return path + "?job_id=" + url.QueryEscape(id) }

// job asks for one job.
func (t *tool) job(ctx context.Context, id string) (*drainJob, error) {
	var jobs []drainJob
	if err := t.data(ctx, http.MethodGet, jobPath(drainPath, id), nil, &jobs); err != nil {
		return nil, aboutDrain(id, err)
	}
	if len(jobs) != 1 {
		return nil, failed("job %s: the master shows %d jobs", printable(id), len(jobs))
	}
	return &jobs[0], nil
}

func (t *tool) showJob(ctx context.Context, id string) error {
	job, err := t.job(ctx, id)
	if err != nil {
		return err
	}
	return t.printJobs([]drainJob{*job})
}

// watch follows a job and shows how it ended; its end decides the exit status.
func (t *tool) watch(ctx context.Context, id string) error {
	job, err := t.follow(ctx, id)
	if err != nil {
		return err
	}
	if err := t.printJobs([]drainJob{*job}); err != nil {
		return err
	}
	switch job.Status {
	case drain.Succeeded.String():
		return nil
	case drain.Canceled.String():
		return failed("job %s was canceled", job.ID)
	}
	return failed("job %s: %s", job.ID, job.Message).hinting("%s could not be moved; the segments take new objects again", plural(int(job.Remaining), "object"))
}

// aboutDrain says what a refusal means for a job or for the segments of one.
func aboutDrain(what string, err error) error {
	var no *refusal
	if !errors.As(err, &no) {
		return err
	}
	f := no.failure()
	switch no.Code {
	case errcode.JobNotFound:
		f.text = fmt.Sprintf("there is no job %q", what)
		return f.hinting("mooncakectl drain list shows all; a master forgets them when it stops")
	case errcode.SegmentNotFound:
		f.text = fmt.Sprintf("%s: one of the segments is not mounted", what)
		return f.hinting("segments are named as their clients call them: GET /get_segments_detail lists them")
	case errcode.UnavailableInStatus:
		if strings.Contains(no.path, "/cancel") {
			f.text = fmt.Sprintf("job %s is over", what)
			return f
		}
		f.text = fmt.Sprintf("%s: one of the segments is being drained or unmounted already", what)
		return f.hinting("mooncakectl drain list shows the jobs")
	case errcode.InvalidParams:
		if strings.Contains(no.path, "job_id=") {
			return misused("%q is no job: want two numbers with a - between them", what)
		}
		f.text = fmt.Sprintf("%s: a segment is named twice, or is its own target", what)
	}
	return f
}

// printJobs shows jobs, a single one in JSON as itself.
func (t *tool) printJobs(jobs []drainJob) error {
	if t.json {
		return t.printJSON(jobs[0])
	}
	var rows [][]cell
	for _, j := range jobs {
		color, notes := plain, []string{}
		switch j.Status {
		case drain.Succeeded.String():
			color = green
		case drain.Failed.String(), drain.Canceled.String():
			color = red
		default:
			if eta := j.eta(); eta > 0 {
				notes = append(notes, "about "+eta.String()+" left")
			}
		}
		if j.ActiveDone > 0 {
			notes = append(notes, fmt.Sprintf("%s of %s being moved", size(j.ActiveDone), size(j.ActiveBytes)))
		}
		if j.Canceling {
			notes = append(notes, "is being canceled")
		}
		rows = append(rows, []cell{
			left(j.ID), left(j.Status).in(color), left(strings.Join(j.Segments, " ")),
			number(fmt.Sprintf("%d/%d", j.done(), j.Total)), number(size(j.Bytes)),
			number(fmt.Sprint(j.Active)), number(fmt.Sprint(j.Blocked)), number(fmt.Sprint(j.Failed)),
			left(strings.Join(notes, ", ")),
		})
	}
	t.table([]string{"JOB", "STATUS", "SEGMENTS", "MOVED", "BYTES", "ACTIVE", "BLOCKED", "FAILED", "NOTES"}, rows)
	return nil
}

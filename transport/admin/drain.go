package admin

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// Drains is what the routes about drain jobs need of the master. All calls may overlap.
type Drains interface {
	CreateDrainJob(drain.Request) (segment.UUID, errcode.Code)
	QueryDrainJob(id segment.UUID) (drain.Report, errcode.Code)
	CancelDrainJob(id segment.UUID, patient bool) (done bool, _ errcode.Code)
	DrainJobs() []drain.Report
}

func (s *Server) postDrainJob(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	request := drain.Request{Concurrency: drain.DefaultConcurrency}
	l := &lenient{in: body}
	err := l.object(map[string]func(){
		"segments":        func() { request.Segments = l.strings() },
		"target_segments": func() { request.Targets = l.strings() },
		"max_concurrency": func() { request.Concurrency = l.number32() },
	})
	if err != nil {
		respondError(w, errcode.InvalidParams, "Invalid JSON body: "+err.Error())
		return
	}
	if !s.ready(w) {
		return
	}
	id, code := s.state.Drains.CreateDrainJob(request)
	if code != errcode.OK {
		respondCode(w, code)
		return
	}
	respondJob(w, id, drain.Created.String())
}

func (s *Server) cancelDrainJob(w http.ResponseWriter, r *http.Request) {
	id, ok := jobID(w, r)
	if !ok || !s.ready(w) {
		return
	}
	// when_idle is our own: the released masters only refuse while units are being moved.
	done, code := s.state.Drains.CancelDrainJob(id, decoded(r.URL.RawQuery, "when_idle") == "true")
	if code != errcode.OK {
		respondCode(w, code)
		return
	}
	if done {
		respondJob(w, id, drain.Canceled.String())
	} else {
		respondJob(w, id, "CANCELING")
	}
}

func respondJob(w http.ResponseWriter, id segment.UUID, status string) {
	b := stringField(boolField([]byte{'{'}, "success", true), "job_id", id.String())
	b = stringField(b, "status", status)
	respond(w, http.StatusOK, typeJSON, append(noError(b), '}'))
}

func noError(b []byte) []byte {
	return stringField(intField(b, "error_code", 0), "error_message", "")
}

func (s *Server) queryDrainJob(w http.ResponseWriter, r *http.Request) {
	id, ok := jobID(w, r)
	if !ok || !s.ready(w) {
		return
	}
	report, code := s.state.Drains.QueryDrainJob(id)
	if code != errcode.OK {
		respondCode(w, code)
		return
	}
	b := appendReport(boolField([]byte{'{'}, "success", true), &report)
	respond(w, http.StatusOK, typeJSON, append(noError(b), '}'))
}

// getDrainJobs is a route of our own: all jobs, or the one with job_id, with what the released masters
// don't say of them.
func (s *Server) getDrainJobs(w http.ResponseWriter, r *http.Request) {
	one := hasParam(r.URL.RawQuery, "job_id")
	var id segment.UUID
	if one {
		var ok bool
		if id, ok = jobID(w, r); !ok {
			return
		}
	}
	if !s.ready(w) {
		return
	}
	var reports []drain.Report
	if !one {
		reports = s.state.Drains.DrainJobs()
	} else if report, code := s.state.Drains.QueryDrainJob(id); code != errcode.OK {
		respondCode(w, code)
		return
	} else {
		reports = append(reports, report)
	}
	b := append(appendField(boolField([]byte{'{'}, "success", true), "data"), '[')
	for _, report := range reports {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = appendReport(append(b, '{'), &report)
		b = stringsField(b, "target_segments", report.Request.Targets)
		b = uintField(b, "max_concurrency", uint64(report.Request.Concurrency))
		b = uintField(b, "total_units", report.Total)
		b = uintField(b, "remaining_units", report.Remaining)
		b = uintField(b, "active_bytes", report.ActiveBytes)
		b = uintField(b, "active_bytes_done", report.ActiveDone)
		b = append(boolField(b, "canceling", report.Canceling), '}')
	}
	respond(w, http.StatusOK, typeJSON, append(b, "]}"...))
}

func appendReport(b []byte, r *drain.Report) []byte {
	b = stringField(b, "job_id", r.ID.String())
	b = stringField(intField(b, "type", 0), "type_name", "DRAIN")
	b = stringField(intField(b, "status", int64(r.Status)), "status_name", r.Status.String())
	b = intField(b, "created_at_ms_epoch", r.CreatedMs)
	b = intField(b, "last_updated_at_ms_epoch", r.UpdatedMs)
	b = stringsField(b, "segments", r.Request.Segments)
	b = uintField(b, "succeeded_units", r.Succeeded)
	b = uintField(b, "failed_units", r.Failed)
	b = uintField(b, "blocked_units", r.Blocked)
	b = uintField(b, "active_units", r.Active)
	b = uintField(b, "migrated_bytes", r.MigratedBytes)
	return stringField(b, "message", r.Message)
}

func stringsField(b []byte, name string, values []string) []byte {
	b = append(appendField(b, name), '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, v)
	}
	return append(b, ']')
}

// jobID returns the job that a request names, or answers and returns false.
func jobID(w http.ResponseWriter, r *http.Request) (segment.UUID, bool) {
	id, ok := parseID(decoded(r.URL.RawQuery, "job_id"))
	if !ok {
		respondError(w, errcode.InvalidParams, "Missing or invalid job_id")
	}
	return id, ok
}

// parseID reads an identity as the released masters do: two numbers joined by "-", before each of
// which there may be blanks and a sign, and after each of which anything.
func parseID(text string) (id segment.UUID, ok bool) {
	first, second, _ := strings.Cut(text, "-")
	if first == "" || second == "" {
		return id, false
	}
	one, ok1 := leadingNumber(first)
	two, ok2 := leadingNumber(second)
	return segment.UUID{First: one, Second: two}, ok1 && ok2
}

// leadingNumber is the number that a text begins with; "-1" is the largest there is.
func leadingNumber(text string) (uint64, bool) {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	negative := strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		text = text[:i]
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if negative {
		n = -n
	}
	return n, err == nil
}

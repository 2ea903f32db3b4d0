package admin

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/policy"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// The routes about the policy as a whole are our own. They are closed when those for single
// tenants are, and say more when something goes wrong: a reason to be matched, and the text.

// strictOnly closes a route while the service is not active or tenants are not strict.
func (s *Server) strictOnly(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.ready(w) && s.strict(w) {
			h(w, r)
		}
	}
}

func data(b []byte) []byte { return appendField(boolField(append(b, '{'), "success", true), "data") }

func (s *Server) getPolicy(w http.ResponseWriter, r *http.Request) {
	var c policy.Current
	switch at := decoded(r.URL.RawQuery, "at"); at {
	case "":
		c = s.state.Documents.InForce()
	case "source":
		var err error
		if c, err = s.state.Documents.AtSource(r.Context()); err != nil {
			s.respondFailure(w, "read", err)
			return
		}
	default:
		refuse(w, http.StatusBadRequest, errcode.InvalidParams, "invalid", "at="+at+": want source, or nothing for what is in force")
		return
	}
	if decoded(r.URL.RawQuery, "raw") == "true" {
		w.Header().Set("X-Policy-Revision", headerText(c.Revision))
		w.Header().Set("X-Policy-Content-Hash", c.ContentHash)
		respond(w, http.StatusOK, typePlain, c.Content)
		return
	}
	b := append(data(nil), '{')
	b = stringField(b, "revision", c.Revision)
	b = stringField(b, "content_hash", c.ContentHash)
	if c.Origin != "" {
		b = stringField(b, "origin", c.Origin)
		b = timeField(b, "in_force_since", c.Since)
		b = intField(b, "tenants", int64(c.Tenants))
	}
	if c.Invalid != nil {
		b = stringField(b, "error", c.Invalid.Error())
	}
	b = stringField(b, "document", string(c.Content))
	respond(w, http.StatusOK, typeJSON, append(b, "}}"...))
}

// headerText keeps a revision, which may be anything, on one line of a header.
func headerText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

func (s *Server) putPolicy(w http.ResponseWriter, r *http.Request) {
	if !hasParam(r.URL.RawQuery, "expected_revision") {
		refuse(w, http.StatusBadRequest, errcode.InvalidParams, "invalid",
			"missing expected_revision: the revision GET answered with, or empty to create the document")
		return
	}
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	expected := decoded(r.URL.RawQuery, "expected_revision")
	done, err := s.state.Documents.Replace(r.Context(), body, expected, decoded(r.URL.RawQuery, "confirm_removal") == "true")
	s.respondApplied(w, "replace", done, err)
}

func (s *Server) postConfirm(w http.ResponseWriter, r *http.Request) {
	revision := decoded(r.URL.RawQuery, "revision")
	if revision == "" {
		refuse(w, http.StatusBadRequest, errcode.InvalidParams, "invalid", "missing revision: the one held back, see /api/v1/tenant_quota_connector")
		return
	}
	done, err := s.state.Documents.Confirm(r.Context(), revision)
	s.respondApplied(w, "confirm", done, err)
}

func (s *Server) respondApplied(w http.ResponseWriter, verb string, a policy.Applied, err error) {
	if err != nil {
		s.respondFailure(w, verb, err)
		return
	}
	b := append(data(nil), '{')
	b = stringField(b, "revision", a.Revision)
	b = stringField(b, "content_hash", a.ContentHash)
	b = countFields(b, a)
	b = boolField(b, "same", a.Same)
	respond(w, http.StatusOK, typeJSON, append(b, "}}"...))
}

func countFields(b []byte, a policy.Applied) []byte {
	b = intField(b, "tenants", int64(a.Tenants))
	b = intField(b, "added", int64(a.Added))
	b = intField(b, "removed", int64(a.Removed))
	return intField(b, "changed", int64(a.Changed))
}

// respondFailure sorts what the policy's own package has to say.
func (s *Server) respondFailure(w http.ResponseWriter, verb string, err error) {
	var invalid *policy.InvalidError
	var removal *policy.RemovalError
	var conflict *policy.ConflictError
	var gone *policy.Unavailable
	switch {
	case errors.As(err, &invalid):
		refuse(w, http.StatusBadRequest, errcode.InvalidParams, "invalid", err.Error())
	case errors.As(err, &removal) && verb == "replace":
		refuse(w, http.StatusConflict, errcode.UnavailableInStatus, "removal", err.Error()+"; it is saved with confirm_removal=true")
	case errors.As(err, &conflict):
		b := stringField(failure(errcode.UnavailableInStatus, "conflict", err.Error()), "current_revision", conflict.Current)
		respond(w, http.StatusConflict, typeJSON, append(b, '}'))
	default:
		s.options.Log.Error("tenant policy could not be changed or read", "verb", verb, "error", err)
		reason := "unavailable"
		switch {
		case errors.Is(err, policy.ErrReadOnly):
			reason = "read_only"
		case errors.As(err, &gone) && gone.Kind == policy.Absent && verb == "read":
			refuse(w, http.StatusNotFound, errcode.ObjectNotFound, "absent", err.Error())
			return
		}
		refuse(w, http.StatusInternalServerError, errcode.PersistentFail, reason, err.Error())
	}
}

func failure(code errcode.Code, reason, message string) []byte {
	b := boolField([]byte{'{'}, "success", false)
	b = intField(b, "error_code", int64(code))
	b = stringField(b, "error_message", message)
	return stringField(b, "reason", reason)
}

func refuse(w http.ResponseWriter, status int, code errcode.Code, reason, message string) {
	respond(w, status, typeJSON, append(failure(code, reason, message), '}'))
}

func (s *Server) getPolicyHistory(w http.ResponseWriter, _ *http.Request) {
	b := append(data(nil), '[')
	for i, a := range s.state.Documents.History() {
		if i > 0 {
			b = append(b, ',')
		}
		b = stringField(append(b, '{'), "revision", a.Revision)
		b = stringField(b, "content_hash", a.ContentHash)
		b = timeField(b, "time", a.Time)
		b = stringField(b, "why", a.Why)
		b = countFields(b, a)
		b = append(stringField(b, "what", a.What), '}')
	}
	respond(w, http.StatusOK, typeJSON, append(b, "]}"...))
}

func (s *Server) postPlan(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	p, err := s.state.Documents.Plan(body)
	if err != nil {
		s.respondFailure(w, "plan", err)
		return
	}
	respond(w, http.StatusOK, typeJSON, appendPlan(data(nil), &p, decoded(r.URL.RawQuery, "all") == "true"))
}

func appendPlan(b []byte, p *policy.Plan, all bool) []byte {
	b = append(appendField(append(b, '{'), "base"), '{')
	b = stringField(b, "revision", p.Revision)
	b = append(stringField(b, "content_hash", p.BaseHash), '}')
	b = append(appendField(b, "document"), '{')
	b = stringField(b, "content_hash", p.ContentHash)
	b = intField(b, "tenants", int64(p.Tenants))
	b = append(appendField(b, "warnings"), '[')
	for i, w := range p.Warnings {
		if i > 0 {
			b = append(b, ',')
		}
		b = intField(append(b, '{'), "line", int64(w.Line))
		b = append(stringField(b, "message", w.Message), '}')
	}
	b = append(b, "]}"...)
	b = boolField(b, "same", p.Same)
	b = intField(b, "added", int64(p.Added))
	b = intField(b, "removed", int64(p.Removed))
	b = intField(b, "changed", int64(p.Changed))
	b = intField(b, "unchanged", int64(p.Unchanged))
	b = append(appendField(b, "tenants"), '[')
	var full []string // removed though not empty
	for i := range p.Preview.Tenants {
		o := &p.Preview.Tenants[i]
		if o.RequestedBefore > 0 && o.RequestedAfter == 0 && (o.ChargedBytes > 0 || o.Objects > 0) {
			full = append(full, o.TenantID)
		}
		if all || o.RequestedBefore != o.RequestedAfter || o.EffectiveBefore != o.EffectiveAfter {
			b = appendOutlook(b, o)
		}
	}
	b = append(appendField(append(b, ']'), "removed_not_empty"), '[')
	for i, name := range full {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
	}
	b = append(appendField(append(b, ']'), "pool"), '{')
	v := &p.Preview
	b = uintField(b, "capacity_bytes", v.CapacityBytes)
	b = uintField(b, "requested_before", v.RequestedBefore)
	b = uintField(b, "requested_after", v.RequestedAfter)
	b = ratioField(b, "oversubscription_before", v.RequestedBefore, v.CapacityBytes)
	b = append(ratioField(b, "oversubscription_after", v.RequestedAfter, v.CapacityBytes), '}')
	b = append(appendField(b, "guard"), '{')
	b = strconv.AppendFloat(appendField(b, "removed_percent"), p.Removal.Percent(), 'g', -1, 64)
	b = intField(b, "max_removal_percent", int64(p.Removal.Most))
	return append(boolField(b, "held", p.Held), "}}}"...)
}

func appendOutlook(b []byte, o *tenant.Outlook) []byte {
	if b[len(b)-1] == '}' {
		b = append(b, ',')
	}
	change := "unchanged"
	switch {
	case o.RequestedBefore == o.RequestedAfter:
	case o.RequestedBefore == 0:
		change = "added"
	case o.RequestedAfter == 0:
		change = "removed"
	default:
		change = "changed"
	}
	b = stringField(append(b, '{'), "tenant_id", o.TenantID)
	b = stringField(b, "change", change)
	b = uintField(b, "requested_before", o.RequestedBefore)
	b = uintField(b, "requested_after", o.RequestedAfter)
	b = uintField(b, "effective_before", o.EffectiveBefore)
	b = uintField(b, "effective_after", o.EffectiveAfter)
	b = uintField(b, "charged_bytes", o.ChargedBytes)
	b = intField(b, "objects", int64(o.Objects))
	b = boolField(b, "over_quota_before", o.OverBefore())
	b = boolField(b, "over_quota_after", o.OverBy() > 0)
	return append(uintField(b, "over_by_bytes", o.OverBy()), '}')
}

// ratioField prints a share of the capacity, or null where there is none.
func ratioField(b []byte, name string, part, capacity uint64) []byte {
	b = appendField(b, name)
	if capacity == 0 {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, float64(part)/float64(capacity), 'g', -1, 64)
}

package admin

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// The order of checks differs by method: GET looks at the service first and the name second,
// PUT and DELETE the other way round, and all of them at the mode last.

func (s *Server) getQuotas(w http.ResponseWriter, r *http.Request) {
	if !s.ready(w) {
		return
	}
	name := decoded(r.URL.RawQuery, "tenant_id")
	if name != "" && !tenant.Valid(name) {
		respondError(w, errcode.InvalidParams, "Invalid tenant_id")
		return
	}
	if !s.strict(w) {
		return
	}
	if name != "" {
		s.respondSnapshot(w, name)
		return
	}
	b := append(appendField(boolField([]byte{'{'}, "success", true), "data"), '[')
	for i, snapshot := range s.state.Tenants.TenantSnapshots() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSnapshot(b, &snapshot)
	}
	respond(w, http.StatusOK, typeJSON, append(b, "]}"...))
}

func (s *Server) putQuota(w http.ResponseWriter, r *http.Request) {
	name := decoded(r.URL.RawQuery, "tenant_id")
	if !tenant.Valid(name) {
		respondError(w, errcode.InvalidParams, "Missing or invalid tenant_id")
		return
	}
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	quota := uint64(0)
	l := &lenient{in: body}
	if err := l.object(map[string]func(){"requested_quota_bytes": func() { quota = l.number() }}); err != nil {
		respondError(w, errcode.InvalidParams, "Invalid JSON body: "+err.Error())
		return
	}
	if quota == 0 || quota > math.MaxInt64 {
		respondError(w, errcode.InvalidParams, "Tenant quota must be in [1, 2^63 - 1] bytes")
		return
	}
	if !s.ready(w) || !s.strict(w) {
		return
	}
	if err := s.state.Policy.Put(r.Context(), name, quota); err != nil {
		s.respondPolicyError(w, "put", name, err)
		return
	}
	s.respondSnapshot(w, name)
}

func (s *Server) deleteQuota(w http.ResponseWriter, r *http.Request) {
	name := decoded(r.URL.RawQuery, "tenant_id")
	if !tenant.Valid(name) {
		respondError(w, errcode.InvalidParams, "Missing or invalid tenant_id")
		return
	}
	if !s.ready(w) || !s.strict(w) {
		return
	}
	if err := s.state.Policy.Delete(r.Context(), name); err != nil {
		s.respondPolicyError(w, "delete", name, err)
		return
	}
	respond(w, http.StatusOK, typeJSON, []byte(`{"success":true,"data":null}`))
}

// strict answers 409 and returns false unless tenants are strict.
func (s *Server) strict(w http.ResponseWriter) bool {
	if s.state.Tenants.MultiTenant() {
		return true
	}
	respondCode(w, errcode.UnavailableInMode)
	return false
}

// respondPolicyError answers with the code an error carries. What has none is a failure to
// save, whose reason only the log can tell.
func (s *Server) respondPolicyError(w http.ResponseWriter, verb, name string, err error) {
	code := errcode.PersistentFail
	var carried errcode.Code
	if errors.As(err, &carried) && carried != errcode.OK {
		code = carried
	}
	if code == errcode.PersistentFail {
		s.options.Log.Error("tenant policy could not be changed", "verb", verb, "tenant", name, "error", err)
	}
	respondCode(w, code)
}

func (s *Server) respondSnapshot(w http.ResponseWriter, name string) {
	snapshot, ok := s.state.Tenants.TenantSnapshot(name)
	if !ok {
		respondCode(w, errcode.ObjectNotFound)
		return
	}
	b := appendField(boolField([]byte{'{'}, "success", true), "data")
	respond(w, http.StatusOK, typeJSON, append(appendSnapshot(b, &snapshot), '}'))
}

func appendSnapshot(b []byte, t *tenant.Snapshot) []byte {
	b = stringField(append(b, '{'), "tenant_id", t.TenantID)
	b = uintField(b, "requested_quota_bytes", t.RequestedQuotaBytes)
	b = uintField(b, "effective_quota_bytes", t.EffectiveQuotaBytes)
	b = uintField(b, "charged_bytes", t.ChargedBytes)
	b = boolField(b, "admission_closed", t.AdmissionClosed)
	b = boolField(b, "over_quota", t.OverQuota)
	return append(boolField(b, "has_explicit_policy", t.HasExplicitPolicy), '}')
}

// getConnector is a route of our own: where the policy comes from and how that is going. It
// answers on a standby too, since there it is asked for most.
func (s *Server) getConnector(w http.ResponseWriter, _ *http.Request) {
	if s.state.Connector == nil {
		respondCode(w, errcode.UnavailableInMode)
		return
	}
	c := s.state.Connector()
	b := append(appendField(boolField([]byte{'{'}, "success", true), "data"), '{')
	b = stringField(b, "type", c.Type)
	b = stringField(b, "state", c.State)
	b = timeField(b, "since", c.Since)
	b = optionalField(b, "last_error", c.LastError)
	b = timeField(b, "last_error_time", c.LastErrorTime)
	b = uintField(b, "restarts", c.Restarts)
	b = append(appendField(b, "policy"), '{')
	b = optionalField(b, "revision", c.Revision)
	b = optionalField(b, "content_hash", c.ContentHash)
	b = timeField(b, "in_force_since", c.InForceSince)
	b = intField(b, "tenants", int64(c.Tenants))
	b = optionalField(b, "origin", c.Origin)
	b = timeField(b, "stale_since", c.StaleSince)
	b = append(b, '}')
	if b = appendField(b, "held"); c.HeldRevision == "" {
		b = append(b, "null"...)
	} else {
		b = stringField(append(b, '{'), "revision", c.HeldRevision)
		b = stringField(b, "content_hash", c.HeldHash)
		b = timeField(b, "since", c.HeldSince)
		b = intField(b, "tenants", int64(c.HeldTenants))
		b = append(intField(b, "removed", int64(c.HeldRemoved)), '}')
	}
	b = append(appendField(b, "stored"), '{')
	b = timeField(b, "time", c.StoredTime)
	b = append(optionalField(b, "error", c.StoredError), '}')
	b = append(appendField(b, "reloads"), '{')
	b = boolField(b, "last_ok", c.ReloadOK)
	b = uintField(b, "success", c.ReloadSuccesses)
	b = append(appendField(b, "failure"), '{')
	reasons := make([]string, 0, len(c.ReloadFailures))
	for reason := range c.ReloadFailures {
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	for i, reason := range reasons {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, reason), ':')
		b = appendUint(b, c.ReloadFailures[reason])
	}
	b = append(b, '}')
	b = timeField(b, "last_success", c.LastSuccess)
	b = append(b, '}')
	b = uintField(b, "overwritten_saves", c.OverwrittenSaves)
	respond(w, http.StatusOK, typeJSON, append(b, "}}"...))
}

// timeField prints UTC with milliseconds, or null for the zero time.
func timeField(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return optionalField(b, name, "")
	}
	return stringField(b, name, t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

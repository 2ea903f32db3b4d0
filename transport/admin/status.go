package admin

import (
	"net/http"
	"strconv"
)

// protocolVersion is what clients compare with their own; all releases so far say this.
const protocolVersion = "2.0.0"

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) {
	st := s.state.Service()
	b := stringField([]byte{'{'}, "status", "ok")
	b = stringField(b, "role", st.Role)
	b = stringField(b, "ha_state", st.HAState)
	b = boolField(b, "service_ready", st.Ready)
	respond(w, http.StatusOK, typeJSON, append(leaderFields(b, st), '}'))
}

func (s *Server) getRole(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, typePlain, []byte(s.state.Service().Role))
}

func (s *Server) getHAStatus(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, typePlain, []byte(s.state.Service().HAState))
}

func (s *Server) getLeader(w http.ResponseWriter, _ *http.Request) {
	st := s.state.Service()
	b := boolField([]byte{'{'}, "present", st.LeaderAddress != "")
	respond(w, http.StatusOK, typeJSON, append(leaderFields(b, st), '}'))
}

func leaderFields(b []byte, st ServiceState) []byte {
	b = optionalField(b, "leader_address", st.LeaderAddress)
	b = appendField(b, "view_version")
	if st.LeaderAddress == "" {
		return append(b, "null"...)
	}
	return strconv.AppendUint(b, st.ViewVersion, 10)
}

func (s *Server) getVersion(w http.ResponseWriter, _ *http.Request) {
	b := stringField([]byte{'{'}, "version", protocolVersion)
	b = stringField(b, "display_version", s.options.Version)
	respond(w, http.StatusOK, typeJSON, append(b, '}'))
}

func (s *Server) getMetrics(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, typeScrape, s.metrics.Text())
}

func (s *Server) getSummary(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, typeScrape, []byte(s.reporter.Summary(s.options.Now())))
}

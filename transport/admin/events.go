package admin

import "net/http"

// getEvents tells what has been published about objects.
func (s *Server) getEvents(w http.ResponseWriter, _ *http.Request) {
	st := s.state.Events()
	b := boolField([]byte{'{'}, "enabled", st.Enabled)
	b = uintField(b, "published_batches", st.Batches)
	b = uintField(b, "published_events", st.Events)
	b = uintField(b, "dropped_events", st.Dropped)
	b = uintField(b, "skipped_keyless_events", st.Keyless)
	respond(w, http.StatusOK, typeJSON, append(b, '}'))
}

package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mooncake-go/mooncake-master/transport/kvevent"
)

func TestEventsStatus(t *testing.T) {
	s := &Server{state: State{Events: func() kvevent.Status {
		return kvevent.Status{Enabled: true, Batches: 1, Events: 2, Dropped: 3, Keyless: 4}
	}}}
	w := httptest.NewRecorder()
	s.getEvents(w, httptest.NewRequest(http.MethodGet, "/kv_events/status", nil))
	const want = `{"enabled":true,"published_batches":1,"published_events":2,"dropped_events":3,"skipped_keyless_events":4}`
	if w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

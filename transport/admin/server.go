package admin

import (
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/julienschmidt/httprouter"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/exposition"
)

// Bounds against slow and greedy clients. A body may take bodyTimeout to arrive and an answer
// writeTimeout to leave; the longest answers get that again for each piece.
const (
	headerTimeout  = 10 * time.Second
	bodyTimeout    = 60 * time.Second
	writeTimeout   = 60 * time.Second
	idleTimeout    = 120 * time.Second
	maxHeaderBytes = 1 << 20
	// MaxBodyBytes is the longest request body taken; more is answered 413.
	MaxBodyBytes = 64 << 20
)

// The content types of the released masters.
const (
	typeJSON   = "application/json; charset=utf-8"
	typePlain  = "text/plain; charset=utf-8"
	typeScrape = exposition.ContentType
)

// Options configure a Server.
type Options struct {
	Version string           // display version, for /version and mooncake_build_info
	Now     func() time.Time // wall clock, for rates and deadlines
	Log     hclog.Logger
}

// Server answers the admin interface. It is ready to be served on a listener that the caller
// has bound already.
type Server struct {
	state    State
	options  Options
	metrics  *Metrics
	reporter *Reporter
	http     *httpServer
}

// NewServer returns a server over the given state. The reporter's rates are shared with
// whoever writes the periodic log line.
func NewServer(state State, reporter *Reporter, options Options) *Server {
	s := &Server{state: state, options: options, metrics: NewMetrics(state, options.Version), reporter: reporter}
	s.http = newHTTPServer(s.routes(), options.Log)
	return s
}

// newHTTPServer sets the bounds shared by the two HTTP servers of this package.
func newHTTPServer(handler http.Handler, logger hclog.Logger) *httpServer {
	s := &httpServer{silent: make(map[net.Conn]bool)}
	s.Server = &http.Server{
		Handler:                      handler,
		ReadHeaderTimeout:            headerTimeout,
		ReadTimeout:                  bodyTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(serverLog{logger}, "", 0),
		ConnState:                    s.watch,
	}
	return s
}

// serverLog takes what net/http has to say. Peers that send nonsense are its everyday life
// and worth a debug line; a handler that panicked is not.
type serverLog struct{ log hclog.Logger }

func (l serverLog) Write(p []byte) (int, error) {
	line := strings.TrimRight(string(p), "\n")
	if strings.Contains(line, "panic") {
		l.log.Error("http handler failed", "detail", line)
	} else {
		l.log.Debug("http", "detail", line)
	}
	return len(p), nil
}

// newRouter has every convenience off that would answer otherwise than 404.
func newRouter() *httprouter.Router {
	return &httprouter.Router{NotFound: http.HandlerFunc(notFound)}
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusNotFound, "", []byte("404 Not Found"))
}

// Handler returns the routes, for tests and for embedding.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Serve answers connections of the listener until Shutdown; it then returns nil.
func (s *Server) Serve(l net.Listener) error { return s.http.serve(l) }

// Shutdown closes the listener, lets requests under way finish and returns when they have, or
// cuts them when the context ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.shutdown(ctx) }

// respond writes a whole answer. An empty type leaves the header out, which net/http would
// otherwise guess.
func respond(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	if contentType == "" {
		h["Content-Type"] = nil
	} else {
		h.Set("Content-Type", contentType)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the peer has left; nobody is there to be told
}

// respondCode answers with the standard error body.
func respondCode(w http.ResponseWriter, code errcode.Code) { respondError(w, code, code.Name()) }

func respondError(w http.ResponseWriter, code errcode.Code, message string) {
	respond(w, status(code), typeJSON, errorBody(code, message))
}

func errorBody(code errcode.Code, message string) []byte {
	b := boolField([]byte{'{'}, "success", false)
	b = intField(b, "error_code", int64(code))
	b = stringField(b, "error_message", message)
	return append(b, '}')
}

// status is the HTTP status of a result code.
func status(code errcode.Code) int {
	switch code {
	case errcode.OK:
		return http.StatusOK
	case errcode.InvalidParams:
		return http.StatusBadRequest
	case errcode.JobNotFound, errcode.TaskNotFound, errcode.SegmentNotFound, errcode.ObjectNotFound, errcode.TenantNotRegistered:
		return http.StatusNotFound
	case errcode.UnavailableInMode, errcode.UnavailableInStatus, errcode.TenantNotEmpty:
		return http.StatusConflict
	default:
		return http.StatusInternalServerError
	}
}

// ready answers 503 and returns false while the service routes are closed.
func (s *Server) ready(w http.ResponseWriter) bool {
	if s.state.Service().Ready {
		return true
	}
	respond(w, http.StatusServiceUnavailable, typeJSON, errorBody(errcode.UnavailableInMode, "service plane is not active"))
	return false
}

// whenReady closes a route while the service is not active.
func (s *Server) whenReady(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.ready(w) {
			h(w, r)
		}
	}
}

// readBody returns the body, or answers and returns false.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := limitedBody(w, r)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return body, true
	case errors.As(err, &tooLarge):
		respond(w, http.StatusRequestEntityTooLarge, typeJSON,
			errorBody(errcode.InvalidParams, "request body is larger than "+strconv.Itoa(MaxBodyBytes)+" bytes"))
	default:
		respondError(w, errcode.InvalidParams, "request body could not be read: "+err.Error())
	}
	return nil, false
}

func limitedBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > MaxBodyBytes {
		w.Header().Set("Connection", "close")
		return nil, &http.MaxBytesError{Limit: MaxBodyBytes}
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
}

// routes is the table of everything served.
func (s *Server) routes() http.Handler {
	r := newRouter()
	r.HandlerFunc(http.MethodGet, "/metrics", s.getMetrics)
	r.HandlerFunc(http.MethodGet, "/metrics/summary", s.getSummary)
	r.HandlerFunc(http.MethodGet, "/health", s.getHealth)
	r.HandlerFunc(http.MethodGet, "/role", s.getRole)
	r.HandlerFunc(http.MethodGet, "/ha_status", s.getHAStatus)
	r.HandlerFunc(http.MethodGet, "/leader", s.getLeader)
	r.HandlerFunc(http.MethodGet, "/version", s.getVersion)
	r.HandlerFunc(http.MethodGet, "/kv_events/status", s.whenReady(s.getEvents))
	r.HandlerFunc(http.MethodGet, "/api/v1/dfs/shard_count", s.whenReady(func(w http.ResponseWriter, _ *http.Request) {
		respondCode(w, errcode.UnavailableInMode)
	}))

	r.HandlerFunc(http.MethodGet, "/query_key", s.whenReady(s.getKey))
	r.HandlerFunc(http.MethodGet, "/batch_query_keys", s.whenReady(s.getKeys))
	r.HandlerFunc(http.MethodGet, "/get_all_keys", s.whenReady(s.getAllKeys))
	r.HandlerFunc(http.MethodPost, "/api/v1/remove_all", s.whenReady(s.postRemoveAll))
	r.HandlerFunc(http.MethodPost, "/api/v1/soft_pin", s.postSoftPin)
	r.HandlerFunc(http.MethodPost, "/api/v1/soft_unpin", s.postSoftUnpin)

	r.HandlerFunc(http.MethodGet, "/get_all_segments", s.whenReady(s.getSegments))
	r.HandlerFunc(http.MethodGet, "/get_segments_detail", s.whenReady(s.getSegmentsDetail))
	r.HandlerFunc(http.MethodGet, "/query_segment", s.whenReady(s.getSegment))
	r.HandlerFunc(http.MethodGet, "/api/v1/segments/status", s.getSegmentStatus)

	r.HandlerFunc(http.MethodPost, "/api/v1/drain_jobs", s.postDrainJob)
	r.HandlerFunc(http.MethodGet, "/api/v1/drain_jobs", s.getDrainJobs)
	r.HandlerFunc(http.MethodGet, "/api/v1/drain_jobs/query", s.queryDrainJob)
	r.HandlerFunc(http.MethodPost, "/api/v1/drain_jobs/cancel", s.cancelDrainJob)

	own(r, "/api/v1/transfers", handlers{http.MethodGet: s.whenReady(s.getTransfers)})
	own(r, "/api/v1/transfers/:id", handlers{http.MethodDelete: s.whenReady(s.deleteTransfer)})

	r.HandlerFunc(http.MethodGet, "/api/v1/tenant_quotas", s.getQuotas)
	r.HandlerFunc(http.MethodPut, "/api/v1/tenant_quotas", s.putQuota)
	r.HandlerFunc(http.MethodDelete, "/api/v1/tenant_quotas", s.deleteQuota)
	own(r, "/api/v1/tenant_quota_connector", handlers{http.MethodGet: s.getConnector})
	own(r, "/api/v1/tenant_quota_policy", handlers{http.MethodGet: s.strictOnly(s.getPolicy), http.MethodPut: s.strictOnly(s.putPolicy)})
	own(r, "/api/v1/tenant_quota_policy/plan", handlers{http.MethodPost: s.strictOnly(s.postPlan)})
	own(r, "/api/v1/tenant_quota_policy/confirm", handlers{http.MethodPost: s.strictOnly(s.postConfirm)})
	own(r, "/api/v1/tenant_quota_policy/history", handlers{http.MethodGet: s.strictOnly(s.getPolicyHistory)})
	return r
}

// handlers are those of one path, by method.
type handlers map[string]http.HandlerFunc

// own registers a path that the original does not have. A wrong method is answered 404 as
// everywhere, but in JSON and naming the right one.
func own(r *httprouter.Router, path string, by handlers) {
	right := strings.Join(slices.Sorted(maps.Keys(by)), " or ")
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		if h := by[m]; h != nil {
			r.HandlerFunc(m, path, h)
			continue
		}
		r.HandlerFunc(m, path, func(w http.ResponseWriter, _ *http.Request) {
			respond(w, http.StatusNotFound, typeJSON,
				errorBody(errcode.InvalidParams, "there is no "+m+" "+path+", use "+right))
		})
	}
}

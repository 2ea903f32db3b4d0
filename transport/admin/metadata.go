package admin

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// Store is the map in which transfer engines find each other. Keys are kept decoded, so that
// a%2Fb and a/b are one entry and the cleanup finds what clients wrote. It is safe for use by
// many at once, and lost with the process.
type Store struct {
	mu      sync.RWMutex // guards entries
	entries map[string][]byte
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{entries: map[string][]byte{}} }

// Get returns a copy-free view of what is stored; callers must not change it.
func (s *Store) Get(key string) ([]byte, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.entries[key]
	return v, ok
}

// PutResult is what became of a Put.
type PutResult uint8

// The results of Put. Entries of RPC endpoints can not be replaced by different ones: two
// engines of one name would answer for each other.
const (
	PutUpdated PutResult = iota
	PutUnchanged
	PutDuplicate
)

// Put stores value, which the store keeps.
func (s *Store) Put(key string, value []byte) PutResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.entries[key]; ok && strings.Contains(key, "rpc_meta") {
		if bytes.Equal(old, value) {
			return PutUnchanged
		}
		return PutDuplicate
	}
	s.entries[key] = value
	return PutUpdated
}

// Delete removes an entry and reports whether there was one.
func (s *Store) Delete(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.entries[key]
	delete(s.entries, key)
	return ok
}

// Len returns the number of entries.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.entries)
}

// Cleanup removes what the owner of a segment left behind when it vanished, and reports
// which of the two entries there were.
func (s *Store) Cleanup(segmentName, clusterID string) (ram, rpcMeta bool) {
	keys := cleanupKeys(segmentName, clusterID)
	return s.Delete(keys[0]), s.Delete(keys[1])
}

// cleanupKeys are the entries a transfer engine writes for a segment.
func cleanupKeys(segmentName, clusterID string) [2]string {
	prefix := "mooncake/"
	if clusterID != "" {
		prefix += clusterID + "/"
	}
	return [2]string{prefix + "ram/" + segmentName, prefix + "rpc_meta/" + segmentName}
}

// MetadataServer serves a Store over HTTP.
type MetadataServer struct {
	store *Store
	http  *httpServer
}

// NewMetadataServer returns a server over a store.
func NewMetadataServer(store *Store, logger hclog.Logger) *MetadataServer {
	m := &MetadataServer{store: store}
	r := newRouter()
	r.HandlerFunc(http.MethodGet, "/metadata", m.keyed(m.get))
	r.HandlerFunc(http.MethodPut, "/metadata", m.keyed(m.put))
	r.HandlerFunc(http.MethodDelete, "/metadata", m.keyed(m.delete))
	r.HandlerFunc(http.MethodGet, "/health", func(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, "", []byte("OK")) })
	m.http = newHTTPServer(r, logger)
	return m
}

// Handler returns the routes, for tests and for embedding.
func (m *MetadataServer) Handler() http.Handler { return m.http.Handler }

// Serve answers connections of the listener until Shutdown; it then returns nil.
func (m *MetadataServer) Serve(l net.Listener) error { return m.http.serve(l) }

// Shutdown closes the listener, lets requests under way finish and returns when they have, or
// cuts them when the context ends.
func (m *MetadataServer) Shutdown(ctx context.Context) error { return m.http.shutdown(ctx) }

func (m *MetadataServer) keyed(h func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key := unescape(param(r.URL.RawQuery, "key"))
		if key == "" {
			respond(w, http.StatusBadRequest, "", []byte("Missing key parameter"))
			return
		}
		h(w, r, key)
	}
}

func (m *MetadataServer) get(w http.ResponseWriter, _ *http.Request, key string) {
	value, ok := m.store.Get(key)
	if !ok {
		respond(w, http.StatusNotFound, "", []byte("metadata not found"))
		return
	}
	respond(w, http.StatusOK, "application/json", value)
}

func (m *MetadataServer) put(w http.ResponseWriter, r *http.Request, key string) {
	value, err := limitedBody(w, r)
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			respond(w, http.StatusRequestEntityTooLarge, "", []byte("metadata too large"))
			return
		}
		respond(w, http.StatusBadRequest, "", []byte("request body could not be read"))
		return
	}
	switch m.store.Put(key, value) {
	case PutUpdated:
		respond(w, http.StatusOK, "", []byte("metadata updated"))
	case PutUnchanged:
		respond(w, http.StatusOK, "", []byte("metadata unchanged"))
	case PutDuplicate:
		respond(w, http.StatusBadRequest, "", []byte("Duplicate rpc_meta key not allowed"))
	}
}

func (m *MetadataServer) delete(w http.ResponseWriter, _ *http.Request, key string) {
	if !m.store.Delete(key) {
		respond(w, http.StatusNotFound, "", []byte("metadata not found"))
		return
	}
	respond(w, http.StatusOK, "", []byte("metadata deleted"))
}

package node

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/exposition"
)

var errServerClosed = http.ErrServerClosed

// health is what GET /health says.
type health struct {
	Status    string `json:"status"` // "ok", or what keeps the node from serving: "joining", "master away", "leaving"
	Segment   string `json:"segment"`
	Endpoint  string `json:"endpoint"`
	Bytes     uint64 `json:"bytes"`
	Connected bool   `json:"master_connected"`
}

func (n *Node) health() health {
	h := health{Status: "ok", Bytes: n.cfg.SegmentBytes, Connected: n.connected()}
	switch {
	case !n.isMounted():
		h.Status = "joining"
		return h
	case n.leaving.Load():
		h.Status = "leaving"
	case !h.Connected:
		h.Status = "master away"
	}
	h.Segment, h.Endpoint = n.name, n.host.Name()
	return h
}

// newServer is the HTTP interface: /health, which is 200 while the node serves and else 503, and /metrics.
func (n *Node) newServer() *http.Server {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		h := n.health()
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		if h.Status != "ok" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h) // who asked may have gone
	})
	routes.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", exposition.ContentType)
		_, _ = w.Write(n.metrics())
	})
	return &http.Server{Handler: routes, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
}

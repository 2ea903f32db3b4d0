package admin

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

func (s *Server) getSegments(w http.ResponseWriter, _ *http.Request) {
	var b []byte
	seen := map[string]bool{}
	for _, v := range s.state.Segments.SegmentViews() {
		if v.Status == segment.StatusOK && !seen[v.Info.Name] {
			seen[v.Info.Name] = true
			b = append(append(b, v.Info.Name...), '\n')
		}
	}
	respond(w, http.StatusOK, typeScrape, b)
}

func (s *Server) getSegmentsDetail(w http.ResponseWriter, _ *http.Request) {
	views := s.state.Segments.SegmentViews()
	b := intField([]byte{'{'}, "total_segments", int64(len(views)))
	b = append(appendField(b, "segments"), '[')
	for i := range views {
		v := &views[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = stringField(append(b, '{'), "segment_name", v.Info.Name)
		b = stringField(b, "segment_id", v.Info.ID.String())
		b = stringField(b, "client_id", v.Client.String())
		b = stringField(b, "base_address", fmt.Sprintf("0x%x", v.Info.Base))
		b = uintField(b, "size_bytes", v.Info.Size)
		b = stringField(b, "size_human", strconv.FormatFloat(float64(v.Info.Size)/(1<<30), 'g', 6, 64)+" GiB")
		b = stringField(b, "te_endpoint", v.Info.Endpoint)
		b = stringField(b, "protocol", v.Info.Protocol)
		b = stringField(b, "status", v.Status.String())
		used, capacity := v.Used, v.Capacity
		if v.Status != segment.StatusOK {
			used, capacity = 0, 0 // it is not among those that take allocations
		}
		b = uintField(b, "allocator_used_bytes", used)
		b = uintField(b, "allocator_capacity_bytes", capacity)
		percent := 0.0
		if capacity > 0 {
			percent = float64(used) / float64(capacity) * 100
		}
		b = append(floatField(b, "allocator_usage_percent", percent), '}')
	}
	respond(w, http.StatusOK, typeJSON, append(b, "]}"...))
}

func (s *Server) getSegment(w http.ResponseWriter, r *http.Request) {
	name := unescape(param(r.URL.RawQuery, "segment"))
	used, capacity, code := s.state.Segments.QuerySegment(name)
	if name == "" || code != errcode.OK {
		respond(w, http.StatusInternalServerError, typeScrape, []byte("Failed to query segment"))
		return
	}
	respond(w, http.StatusOK, typeScrape,
		fmt.Appendf(nil, "%s\nUsed(bytes): %d\nCapacity(bytes) : %d\n", name, used, capacity))
}

func (s *Server) getSegmentStatus(w http.ResponseWriter, r *http.Request) {
	name := decoded(r.URL.RawQuery, "segment")
	if name == "" {
		respondError(w, errcode.InvalidParams, "Missing segment query parameter")
		return
	}
	if !s.ready(w) {
		return
	}
	state, code := s.state.Segments.QuerySegmentStatus(name)
	if code != errcode.OK {
		respondCode(w, code)
		return
	}
	b := boolField([]byte{'{'}, "success", true)
	b = stringField(b, "segment", name)
	b = intField(b, "status", int64(state))
	b = stringField(b, "status_name", state.String())
	b = intField(b, "error_code", 0)
	respond(w, http.StatusOK, typeJSON, append(stringField(b, "error_message", ""), '}'))
}

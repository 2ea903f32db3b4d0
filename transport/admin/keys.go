package admin

import (
	"bufio"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// maxPinKeys is how many keys one request may pin.
const maxPinKeys = 4096

// tenantOf returns the tenant a key route asks about, or answers 400 and returns false.
func tenantOf(w http.ResponseWriter, r *http.Request) (string, bool) {
	name := tenant.Normalize(decoded(r.URL.RawQuery, "tenant_id"))
	if !tenant.Valid(name) {
		respondError(w, errcode.InvalidParams, "Invalid tenant_id")
		return "", false
	}
	return name, true
}

func (s *Server) getKey(w http.ResponseWriter, r *http.Request) {
	name, ok := tenantOf(w, r)
	if !ok {
		return
	}
	key := unescape(param(r.URL.RawQuery, "key"))
	if key == "" {
		respondCode(w, errcode.ObjectNotFound)
		return
	}
	var list object.ReplicaList
	switch code := s.state.Objects.AdminReplicas(name, key, &list); code {
	case errcode.OK:
	case errcode.ReplicaIsNotReady: // here as missing as a key that isn't there
		respond(w, http.StatusNotFound, typeJSON, errorBody(code, code.Name()))
		return
	default:
		respondCode(w, code)
		return
	}
	b := boolField([]byte{'{'}, "success", true)
	b = append(appendField(b, "data"), '[')
	b = appendLocations(b, &list, object.LocationMemory)
	respond(w, http.StatusOK, typeJSON, append(b, "]}"...))
}

func (s *Server) getKeys(w http.ResponseWriter, r *http.Request) {
	name, ok := tenantOf(w, r)
	if !ok {
		return
	}
	given := decoded(r.URL.RawQuery, "keys")
	if given == "" {
		respond(w, http.StatusBadRequest, typeJSON, []byte(`{"success":false,"error":"No keys provided. Use ?keys=key1,key2,..."}`))
		return
	}
	keys := strings.Split(given, ",")
	slices.Sort(keys)
	keys = slices.Compact(keys)
	b := boolField([]byte{'{'}, "success", true)
	b = append(appendField(b, "data"), '{')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, key), ':', '{')
		var list object.ReplicaList
		code := s.state.Objects.AdminReplicas(name, key, &list)
		b = boolField(b, "ok", code == errcode.OK)
		if code != errcode.OK {
			b = stringField(b, "error", code.Name())
			b = append(b, `,"values":null,"disk_values":null,"local_disk_values":null,"nof_values":null}`...)
			continue
		}
		b = append(b, `,"error":null`...)
		for _, part := range []struct {
			name  string
			index uint8
		}{
			{"values", object.LocationMemory},
			{"disk_values", object.LocationDisk},
			{"local_disk_values", object.LocationLocalDisk},
			{"nof_values", object.LocationNoF},
		} {
			b = appendField(b, part.name)
			if part.index != object.LocationMemory && !slices.ContainsFunc(list.Replicas, func(d object.ReplicaDescriptor) bool { return d.Location.Index == part.index }) {
				b = append(b, "null"...)
				continue
			}
			b = append(appendLocations(append(b, '['), &list, part.index), ']')
		}
		b = append(b, '}')
	}
	respond(w, http.StatusOK, typeJSON, append(b, "}}"...))
}

// appendLocations appends the replicas that lie in one kind of place, separated by commas.
func appendLocations(b []byte, list *object.ReplicaList, index uint8) []byte {
	for i := range list.Replicas {
		at := &list.Replicas[i].Location
		if at.Index != index {
			continue
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = append(b, '{')
		switch index {
		case object.LocationMemory:
			b = appendBuffer(b, &at.Memory.Buffer)
		case object.LocationNoF:
			b = appendBuffer(b, &at.NoF.Buffer)
		case object.LocationDisk:
			b = stringField(b, "file_path", at.Disk.FilePath)
			b = uintField(b, "object_size", at.Disk.ObjectSize)
		case object.LocationLocalDisk:
			b = stringField(b, "client_id", at.LocalDisk.ClientID.String())
			b = uintField(b, "object_size", at.LocalDisk.ObjectSize)
			b = stringField(b, "transport_endpoint", at.LocalDisk.Endpoint)
		}
		b = append(b, '}')
	}
	return b
}

func appendBuffer(b []byte, buffer *object.BufferDescriptor) []byte {
	b = uintField(b, "size_", buffer.Size)
	b = uintField(b, "buffer_address_", buffer.Address)
	b = stringField(b, "protocol_", buffer.Protocol)
	return stringField(b, "transport_endpoint_", buffer.Endpoint)
}

// getAllKeys streams, since there may be gigabytes of keys; the time to write starts anew
// with each piece.
func (s *Server) getAllKeys(w http.ResponseWriter, r *http.Request) {
	name, ok := tenantOf(w, r)
	if !ok {
		return
	}
	keys := s.state.Objects.AllKeys(name)
	total := 0
	for _, key := range keys {
		total += len(key) + 1
	}
	w.Header().Set("Content-Type", typeScrape)
	w.Header().Set("Content-Length", strconv.Itoa(total))
	w.WriteHeader(http.StatusOK)
	const piece = 1 << 20
	out := bufio.NewWriterSize(w, 64<<10)
	deadline := http.NewResponseController(w)
	written := 0
	for _, key := range keys {
		if _, err := out.WriteString(key); err != nil {
			return
		}
		if err := out.WriteByte('\n'); err != nil {
			return
		}
		if written += len(key) + 1; written >= piece {
			written = 0
			if err := deadline.SetWriteDeadline(s.options.Now().Add(writeTimeout)); err != nil {
				s.options.Log.Debug("write deadline of a long answer could not be moved", "error", err)
			}
		}
	}
	_ = out.Flush() // the peer has left; nobody is there to be told
}

func (s *Server) postRemoveAll(w http.ResponseWriter, r *http.Request) {
	force := param(r.URL.RawQuery, "force")
	name := unescape(param(r.URL.RawQuery, "tenant_id"))
	n := s.state.Objects.RemoveAll(name, force == "true" || force == "1")
	b := boolField([]byte{'{'}, "success", true)
	respond(w, http.StatusOK, typeJSON, append(intField(b, "removed_count", n), '}'))
}

func (s *Server) postSoftPin(w http.ResponseWriter, r *http.Request)   { s.pin(w, r, true) }
func (s *Server) postSoftUnpin(w http.ResponseWriter, r *http.Request) { s.pin(w, r, false) }

// pin reads {"keys":[...],"tenant_id":...,"ttl_ms":...}. The time belongs to pinning alone,
// where it must be given. An empty key is refused by itself.
func (s *Server) pin(w http.ResponseWriter, r *http.Request, set bool) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	var keys []string
	var name string
	var ttl *uint64
	l := &lenient{in: body}
	err := l.object(map[string]func(){
		"keys":      func() { keys = l.strings() },
		"tenant_id": func() { name = l.str() },
		"ttl_ms":    func() { ttl = l.optionalNumber() },
	})
	if err != nil {
		respondError(w, errcode.InvalidParams, "Invalid JSON body: "+err.Error())
		return
	}
	if len(keys) == 0 || len(keys) > maxPinKeys || !tenant.Valid(tenant.Normalize(name)) || (ttl != nil) != set {
		respondError(w, errcode.InvalidParams, "Expected 1..4096 keys, a valid tenant, and ttl_ms only for soft_pin")
		return
	}
	if !s.ready(w) {
		return
	}
	var codes []errcode.Code
	if set {
		codes = s.state.SoftPins.SetSoftPins(name, keys, ttl)
	} else {
		codes = s.state.SoftPins.ClearSoftPins(name, keys)
	}
	b := append(appendField([]byte{'{'}, "results"), '[')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		code := codes[i]
		if key == "" {
			code = errcode.InvalidParams
		}
		b = stringField(append(b, '{'), "key", key)
		b = append(intField(b, "error_code", int64(code)), '}')
	}
	respond(w, http.StatusOK, typeJSON, append(b, "]}"...))
}

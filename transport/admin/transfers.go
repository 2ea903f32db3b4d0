package admin

import (
	"net/http"
	"path"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

// Transfers is what the routes about copies and moves under way need of the master. All calls may overlap.
type Transfers interface {
	Transfers() []core.TransferView
	CancelTransfer(id segment.UUID) errcode.Code
}

// getTransfers is a route of our own: what tasks have asked for and is under way.
func (s *Server) getTransfers(w http.ResponseWriter, _ *http.Request) {
	b := append(appendField(boolField([]byte{'{'}, "success", true), "data"), '[')
	for _, t := range s.state.Transfers.Transfers() {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		kind := "COPY"
		if t.Type == task.Move {
			kind = "MOVE"
		}
		b = stringField(append(b, '{'), "id", t.ID.String())
		b = stringField(b, "tenant_id", t.Tenant)
		b = stringField(b, "key", t.Key)
		b = stringField(b, "type", kind)
		b = stringField(b, "source", t.Source)
		b = stringsField(b, "targets", t.Targets)
		b = uintField(b, "bytes_total", t.Bytes)
		b = uintField(b, "bytes_done", t.Done)
		b = intField(b, "since_ms_epoch", t.SinceMs)
		b = stringField(b, "executor", t.Executor)
		b = append(stringField(b, "client_id", t.Client.String()), '}')
	}
	respond(w, http.StatusOK, typeJSON, append(b, "]}"...))
}

// deleteTransfer is a route of our own: it gives a task up.
func (s *Server) deleteTransfer(w http.ResponseWriter, r *http.Request) {
	id, ok := parseID(path.Base(r.URL.Path))
	if !ok {
		respondError(w, errcode.InvalidParams, "the id of a transfer is two numbers with a - between them")
		return
	}
	if code := s.state.Transfers.CancelTransfer(id); code != errcode.OK {
		respondCode(w, code)
		return
	}
	b := stringField(boolField([]byte{'{'}, "success", true), "id", id.String())
	respond(w, http.StatusOK, typeJSON, append(noError(b), '}'))
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

// service is the contract's service over a file that is looked at every 10 ms.
type service struct {
	connectorv1.UnimplementedConnectorServer
	mode mode

	mu     sync.Mutex
	path   string     // guarded by mu
	saving sync.Mutex // held during a Save
}

func (s *service) Describe(context.Context, *connectorv1.DescribeRequest) (*connectorv1.DescribeResponse, error) {
	time.Sleep(s.mode.slow)
	return &connectorv1.DescribeResponse{
		Name: "raw", Version: "1", AbsentMeans: connectorv1.AbsentMeans_ABSENT_MEANS_ERROR,
		Capabilities: &connectorv1.Capabilities{Writable: true, Watches: true},
	}, nil
}

func (s *service) Configure(_ context.Context, req *connectorv1.ConfigureRequest) (*connectorv1.ConfigureResponse, error) {
	path, ok := strings.CutPrefix(req.GetUri(), "file://")
	resp := &connectorv1.ConfigureResponse{}
	if !ok {
		resp.Notes = append(resp.Notes, &connectorv1.ConfigNote{Field: "uri", Message: "must begin with file://"})
	}
	for name := range req.GetOptions() {
		resp.Notes = append(resp.Notes, &connectorv1.ConfigNote{Field: "options." + name, Message: "there are no options"})
	}
	if len(resp.GetNotes()) == 0 {
		s.mu.Lock()
		s.path = path
		s.mu.Unlock()
	}
	return resp, nil
}

func (s *service) file() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.path
}

// read gives the file's content, or why there is none.
func (s *service) read() ([]byte, *connectorv1.Unavailable) {
	path := s.file()
	if info, err := os.Stat(path); err == nil && info.Size() > 64<<20 {
		return nil, &connectorv1.Unavailable{Kind: connectorv1.UnavailableKind_UNAVAILABLE_KIND_INVALID, Reason: path + " is larger than 64 MiB"}
	}
	content, err := os.ReadFile(path)
	kind := connectorv1.UnavailableKind_UNAVAILABLE_KIND_UNREACHABLE
	switch {
	case err == nil:
		return content, nil
	case errors.Is(err, fs.ErrNotExist):
		kind = connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT
	}
	return nil, &connectorv1.Unavailable{Kind: kind, Reason: err.Error(), Retryable: true}
}

func revision(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (s *service) Load(context.Context, *connectorv1.LoadRequest) (*connectorv1.LoadResponse, error) {
	content, gone := s.read()
	if gone != nil {
		return &connectorv1.LoadResponse{Unavailable: gone}, nil
	}
	return &connectorv1.LoadResponse{Present: true, Document: content, Revision: revision(content)}, nil
}

// settled is how old a file's time stamp is when a later change will have another one: stamps are as coarse as
// the kernel's ticks.
const settled = 100 * time.Millisecond

func (s *service) Watch(req *connectorv1.WatchRequest, stream grpc.ServerStreamingServer[connectorv1.WatchResponse]) error {
	if s.mode.pin {
		go pin()
	}
	known, seen, beat := req.GetFromRevision(), "nothing yet", time.Time{}
	send := func(e *connectorv1.WatchResponse) error {
		if s.mode.edit != nil && !s.mode.edit(e) {
			return nil
		}
		return stream.Send(e)
	}
	for {
		if time.Since(beat) >= 10*time.Second {
			beat = time.Now()
			if err := send(&connectorv1.WatchResponse{Event: &connectorv1.WatchResponse_Heartbeat{Heartbeat: &connectorv1.Heartbeat{}}}); err != nil {
				return err
			}
		}
		is, young := s.file(), false
		if info, err := os.Stat(is); err == nil {
			is += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), info.Mode())
			young = time.Since(info.ModTime()) < settled
		} else {
			is += err.Error()
		}
		if is != seen || young {
			again := is == seen
			seen = is
			event := &connectorv1.WatchResponse{}
			content, gone := s.read()
			sum := sha256.Sum256(content)
			now := hex.EncodeToString(sum[:])
			switch {
			case gone != nil && again:
			case gone != nil:
				known, event.Event = "", &connectorv1.WatchResponse_Unavailable{Unavailable: gone}
			case now != known || s.mode.repeats && !again:
				known, event.Event = now, &connectorv1.WatchResponse_Snapshot{Snapshot: &connectorv1.Snapshot{Document: content, Revision: now, Sha256: sum[:]}}
			}
			if event.GetEvent() != nil {
				if err := send(event); err != nil {
					return err
				}
			}
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *service) Save(_ context.Context, req *connectorv1.SaveRequest) (*connectorv1.SaveResponse, error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	content, gone := s.read()
	now := ""
	switch {
	case gone == nil:
		now = revision(content)
	case gone.GetKind() != connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT:
		return &connectorv1.SaveResponse{Outcome: connectorv1.SaveOutcome_SAVE_OUTCOME_UNAVAILABLE, Reason: gone.GetReason()}, nil
	}
	if now != req.GetExpectedRevision() {
		return &connectorv1.SaveResponse{Outcome: connectorv1.SaveOutcome_SAVE_OUTCOME_CONFLICT, Reason: "it is at " + now}, nil
	}
	path := s.file()
	err := os.WriteFile(path+".saving", req.GetDocument(), 0o600)
	if err == nil {
		err = os.Rename(path+".saving", path)
	}
	if err != nil {
		return &connectorv1.SaveResponse{Outcome: connectorv1.SaveOutcome_SAVE_OUTCOME_UNAVAILABLE, Reason: err.Error()}, nil
	}
	return &connectorv1.SaveResponse{Outcome: connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED, Revision: revision(req.GetDocument())}, nil
}

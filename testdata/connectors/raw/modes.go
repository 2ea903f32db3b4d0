package main

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"strings"
	"time"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// mode is what it does wrong.
type mode struct {
	banner  string                                // printed before the handshake line
	later   string                                // printed after it
	version func(offer string) string             // nil: 1
	plain   bool                                  // no certificate, no TLS
	open    bool                                  // the caller's certificate is not asked for
	sick    bool                                  // no health service
	small   bool                                  // the gRPC library's limit of 4 MiB stays
	orphan  bool                                  // it lives on without its host
	mute    bool                                  // run by hand it says nothing
	slow    time.Duration                         // before Describe is answered
	repeats bool                                  // the host's revision is told again
	pin     bool                                  // every Watch leaves a thread, cancelled or not
	edit    func(*connectorv1.WatchResponse) bool // changes an event; false drops it
}

var modes = map[string]mode{
	"good":           {},
	"stdout":         {banner: "Welcome to the raw connector\n"},
	"stdout-later":   {later: "now serving\n"},
	"wrong-version":  {version: func(string) string { return "2" }},
	"claims-version": {version: func(offer string) string { return offer[strings.LastIndexByte(offer, ',')+1:] }},
	"plaintext":      {plain: true},
	"open-tls":       {open: true},
	"no-health":      {sick: true},
	"small-messages": {small: true},
	"orphan":         {orphan: true},
	"mute":           {mute: true},
	"slow":           {slow: 3 * time.Second},
	"repeats":        {repeats: true},
	"threads":        {pin: true},
	"no-heartbeat":   {edit: func(e *connectorv1.WatchResponse) bool { return e.GetHeartbeat() == nil }},
	"one-heartbeat":  {edit: firstHeartbeat()},
	"wrong-hash":     {edit: wrongHash},
	"crowd":          {edit: crowd},
}

func firstHeartbeat() func(*connectorv1.WatchResponse) bool {
	beats := 0
	return func(e *connectorv1.WatchResponse) bool {
		if e.GetHeartbeat() != nil {
			beats++
		}
		return e.GetHeartbeat() == nil || beats == 1
	}
}

func wrongHash(e *connectorv1.WatchResponse) bool {
	if s := e.GetSnapshot(); s != nil {
		s.Sha256 = make([]byte, sha256.Size)
	}
	return true
}

// crowd makes 100,000 tenants of whatever the source says, with such long names that they are
// more than a document may have.
func crowd(e *connectorv1.WatchResponse) bool {
	s := e.GetSnapshot()
	if s == nil {
		return true
	}
	tenants := make([]policydoc.Tenant, 100_000)
	for i := range tenants {
		tenants[i] = policydoc.Tenant{Name: fmt.Sprintf("tenant-%06d-%s", i, strings.Repeat("x", 700)), Quota: 1 << 30}
	}
	s.Document = policydoc.Print(tenants)
	sum := sha256.Sum256(s.GetDocument())
	s.Sha256 = sum[:]
	return true
}

// pin keeps a thread for ever.
func pin() {
	runtime.LockOSThread()
	for {
		time.Sleep(time.Hour)
	}
}

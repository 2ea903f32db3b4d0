//go:build !rdma || !cgo

package rdma

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

func TestAProgramWithoutRDMASaysSo(t *testing.T) {
	_, err := Open(Options{Now: time.Now})
	if !errors.Is(err, verbs.ErrNotBuilt) || !strings.Contains(err.Error(), "go build -tags rdma") {
		t.Errorf("%v", err)
	}
	if _, err := Open(Options{}); err == nil || !strings.Contains(err.Error(), "tells the time") {
		t.Errorf("%v", err)
	}
}

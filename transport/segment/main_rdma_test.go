//go:build rdma

package segment

import (
	"testing"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs/verbstest"
)

func TestMain(m *testing.M) { verbstest.Main(m, "segment") }

package transport

import (
	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
)

// Bind registers a handler for every call that this master serves. Those of release 0.3.14
// that it does not serve are left out and so answered "the rpc function not registered".
func Bind(s *rpc.Server, m *core.Master) {
	bindService(s, m)
	bindSegments(s, m)
	bindLookups(s, m)
	bindWrites(s, m)
	bindRemovals(s, m)
	bindTasks(s, m)
	bindDisks(s, m)
	bindWeights(s, m)
	bindNoF(s, m)
}

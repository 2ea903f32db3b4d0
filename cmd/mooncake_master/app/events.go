package app

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/transport/kvevent"
)

// newEvents opens the publisher of KV events if it is asked for. That it can't be opened is logged, and
// the master runs without, as the original does.
func newEvents(c *KVEventsConfig, log hclog.Logger) *kvevent.Publisher {
	if !c.Enabled {
		return nil
	}
	p, err := kvevent.Open(kvevent.Options{
		Endpoint:  c.Endpoint,
		BackendID: c.BackendID,
		Capacity:  int(c.QueueCapacity),
		Legacy:    c.Legacy,
		ObjectKey: c.ObjectKey,
		ModelName: c.ModelName,
		Salt:      c.Salt,
		LoRA:      c.LoRA,
		BlockSize: uint32(c.BlockSize),
		DPRank:    uint32(c.DPRank),
		Now:       time.Now,
		Log:       log,
	})
	if err != nil {
		log.Error("kv events are not published", "error", err)
		return nil
	}
	return p
}

// eventsTimeout is how long subscribers have at the end to read what waits for them.
const eventsTimeout = 500 * time.Millisecond

func (s *Server) closeEvents() error {
	ctx, cancel := context.WithTimeout(context.Background(), eventsTimeout)
	defer cancel()
	return s.events.Close(ctx)
}

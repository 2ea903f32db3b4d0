package rpc

import (
	"bytes"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// TestSystemCalls counts how often the server reads and writes: once each per request, and once
// per bunch when requests come together.
func TestSystemCalls(t *testing.T) {
	if portable {
		return // the runtime reads and writes there
	}
	for name, procs := range map[string]int{"hold": 3, "let go": 1} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			s := newServer(t, Options{Loops: 1})
			handlers(s)
			addr := listen(t, s)
			const conns, rounds = 1000, 5
			var peers []net.Conn
			for range conns {
				peers = append(peers, raw(t, addr))
			}
			waitFor(t, "all to be accepted", func() bool { return s.Stats().Open == conns })
			one := frame(0, wire.ExistKey.ID(), existBody)
			for round := range uint32(rounds) {
				for i, c := range peers {
					send(t, c, frame(round<<16+uint32(i), wire.ExistKey.ID(), existBody))
				}
				for i, c := range peers {
					answerTo(t, c, round<<16+uint32(i))
				}
			}
			// Each connection is looked at once more, when it comes.
			st := s.Stats()
			if most := uint64(conns * (rounds + 1)); st.Reads > most || st.Writes != conns*rounds {
				t.Errorf("%d reads, %d writes for %d requests on %d connections", st.Reads, st.Writes, conns*rounds, conns)
			}

			// A bunch of requests that fits one packet comes at once.
			const bunch = 100
			send(t, peers[0], bytes.Repeat(one, bunch))
			for range bunch {
				answerTo(t, peers[0], 0)
			}
			after := s.Stats()
			if reads, writes := after.Reads-st.Reads, after.Writes-st.Writes; reads != 1 || writes != 1 {
				t.Errorf("%d reads, %d writes for %d requests that came together", reads, writes, bunch)
			}

			// Nothing is read while nobody sends, however often the loop looks.
			time.Sleep(20 * holdMilliseconds * time.Millisecond)
			if idle := s.Stats(); idle.Reads != after.Reads || idle.Writes != after.Writes {
				t.Errorf("%+v at rest, after %+v", idle, after)
			}
		})
	}
}

// TestStoppingTheWorldWhileLoopsHold checks that loops that keep their place while they wait
// neither hold the collector up nor are kept from others that want a place.
func TestStoppingTheWorldWhileLoopsHold(t *testing.T) {
	if portable {
		return // it has no loops
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	s := newServer(t, Options{Loops: 1})
	handlers(s)
	c := raw(t, listen(t, s))
	for seq := range uint32(300) {
		send(t, c, frame(seq, wire.ExistKey.ID(), existBody))
		answerTo(t, c, seq)
		if seq%3 == 0 {
			runtime.GC()
		}
	}
}

package transport

import "github.com/mooncake-go/mooncake-master/transport/rpc"

// pieceKeys is after how many keys of a long batch others get the processor: some 30 µs.
const pieceKeys = 128

// inPieces calls f for one part of a batch of n after the other, with a pause in between. Each
// key of a batch stands for itself, so that it does not matter that other calls come between.
func inPieces(c *rpc.Call, n int, f func(from, to int)) {
	for from := 0; from < n; from += pieceKeys {
		if from > 0 {
			c.Pause()
		}
		f(from, min(from+pieceKeys, n))
	}
}

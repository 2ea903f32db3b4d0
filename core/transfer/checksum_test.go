package transfer

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestSum has the sums that clients of 0.3.13 and 0.3.14 told their masters.
func TestSum(t *testing.T) {
	ramp := make([]byte, 256)
	for i := range ramp {
		ramp[i] = byte(i)
	}
	for _, c := range []struct {
		value []byte
		want  Checksum
	}{
		{nil, 0},
		{make([]byte, 9), 0},
		{[]byte("123456789"), 0x6c40df5f0b497347},
		{[]byte("x"), 0xe224479f47cb76a0},
		{[]byte("hello world"), 0x12511f272d9bc22a},
		{[]byte("xyz"), 0x325cbd4915bb5a29},
		{bytes.Repeat(ramp, 300), 0x3a199d7f19ab898d},
	} {
		if got := Sum(c.value); got != c.want {
			t.Errorf("%d bytes: %#x, want %#x", len(c.value), got, c.want)
		}
	}
}

func TestSumOfPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 5000)
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	for range 500 {
		a, b := rng.IntN(len(value)+1), rng.IntN(len(value)+1)
		a, b = min(a, b), max(a, b)
		want := Sum(value[:b])
		if got := Sum(value[:a]).Update(value[a:b]); got != want {
			t.Fatalf("%d and %d bytes one after the other: %#x, want %#x", a, b-a, got, want)
		}
		if got := Sum(value[:a]).Join(Sum(value[a:b]), uint64(b-a)); got != want {
			t.Fatalf("%d and %d bytes joined: %#x, want %#x", a, b-a, got, want)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	value := make([]byte, 1<<20)
	b.SetBytes(int64(len(value)))
	var sum Checksum
	for b.Loop() {
		sum = sum.Update(value)
	}
	if sum != 0 {
		b.Error("zeroes have a sum")
	}
}

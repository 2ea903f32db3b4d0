package tenant

import (
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestApportion(t *testing.T) {
	tests := []struct {
		name      string
		capacity  uint64
		requested []uint64
		want      []uint64
	}{
		{"measured, 16 MiB", 16777216, []uint64{20000000, 30000001}, []uint64{6710886, 10066330}},
		{"measured, 32 MiB", 33554432, []uint64{20000000, 30000001}, []uint64{13421773, 20132659}},
		{"fits, spare stays", 1000, []uint64{100, 200}, []uint64{100, 200}},
		{"fits exactly", 300, []uint64{100, 200}, []uint64{100, 200}},
		{"halved", 150, []uint64{100, 200}, []uint64{50, 100}},
		{"thirds", 300, []uint64{200, 400}, []uint64{100, 200}},
		{"tie goes to the earlier name", 1, []uint64{5, 5, 5}, []uint64{1, 0, 0}},
		{"two of three ties", 5, []uint64{2, 2, 2}, []uint64{2, 2, 1}},
		{"no capacity", 0, []uint64{1, MaxBytes}, []uint64{0, 0}},
		{"nobody", 100, []uint64{}, []uint64{}},
		{"sum past 64 bits", 10, []uint64{MaxBytes, MaxBytes, MaxBytes}, []uint64{4, 3, 3}},
		{"sum past 64 bits, most capacity", math.MaxUint64, []uint64{MaxBytes, MaxBytes, MaxBytes}, []uint64{6148914691236517205, 6148914691236517205, 6148914691236517205}},
		{"one in much", 9, []uint64{1, MaxBytes}, []uint64{0, 9}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := apportion(tt.capacity, tt.requested); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// apportionSlowly is the rule in arbitrary precision.
func apportionSlowly(capacity uint64, requested []uint64) []uint64 {
	sum, c := new(big.Int), new(big.Int).SetUint64(capacity)
	for _, q := range requested {
		sum.Add(sum, new(big.Int).SetUint64(q))
	}
	if sum.Cmp(c) <= 0 {
		return slices.Clone(requested)
	}
	effective := make([]uint64, len(requested))
	rems := make([]*big.Int, len(requested))
	order := make([]int, len(requested))
	left := capacity
	for i, q := range requested {
		product := new(big.Int).Mul(c, new(big.Int).SetUint64(q))
		quotient, rem := new(big.Int).QuoRem(product, sum, new(big.Int))
		effective[i], rems[i], order[i] = quotient.Uint64(), rem, i
		left -= effective[i]
	}
	slices.SortStableFunc(order, func(i, j int) int { return rems[j].Cmp(rems[i]) })
	for _, i := range order[:left] {
		effective[i]++
	}
	return effective
}

func TestApportionAgreesWithArbitraryPrecision(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	bytes := func() uint64 { return rnd.Uint64() >> rnd.IntN(63) } // of every magnitude
	for range 20000 {
		requested := make([]uint64, 1+rnd.IntN(40))
		narrow := rnd.IntN(4)
		for i := range requested {
			requested[i] = max(1, bytes()&MaxBytes)
			switch narrow {
			case 0: // many equal remainders
				requested[i] = 1 + rnd.Uint64N(4)
			case 1: // sums past 64 bits
				requested[i] = MaxBytes - rnd.Uint64N(1000)
			}
		}
		capacity := bytes()
		got, want := apportion(capacity, requested), apportionSlowly(capacity, requested)
		if !slices.Equal(got, want) {
			t.Fatalf("capacity %d, requested %v: got %v, want %v", capacity, requested, got, want)
		}
	}
}

func TestDiv128(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	big128 := func(hi, lo uint64) *big.Int {
		n := new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64)
		return n.Or(n, new(big.Int).SetUint64(lo))
	}
	edge := []uint64{0, 1, 2, 1 << 63, math.MaxUint64, math.MaxUint64 - 1}
	word := func() uint64 {
		if rnd.IntN(3) == 0 {
			return edge[rnd.IntN(len(edge))]
		}
		return rnd.Uint64() >> rnd.IntN(64)
	}
	for range 200000 {
		nHi, nLo, dHi, dLo := word(), word(), word(), word()
		if dHi == 0 && dLo <= nHi {
			continue // the quotient would not fit
		}
		q, rHi, rLo := div128(nHi, nLo, dHi, dLo)
		wantQ, wantR := new(big.Int).QuoRem(big128(nHi, nLo), big128(dHi, dLo), new(big.Int))
		if cmp.Or(wantQ.Cmp(new(big.Int).SetUint64(q)), wantR.Cmp(big128(rHi, rLo))) != 0 {
			t.Fatalf("%d:%d / %d:%d = %d rem %d:%d, want %v rem %v", nHi, nLo, dHi, dLo, q, rHi, rLo, wantQ, wantR)
		}
	}
}

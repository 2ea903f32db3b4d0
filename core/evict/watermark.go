package evict

import "math"

// Watermark is a share of capacity above which eviction starts, and the further share that it
// frees beyond that. Both are in [0, 1]; High 0 means off for tenants.
type Watermark struct{ High, Ratio float64 }

// PoolTarget says which share of each tenant's objects a pass has to give up at the given use
// (bytes used over capacity): at least lower, as wanted, target. A pass that an allocation
// failure asked for runs at any use.
func (w Watermark) PoolTarget(used float64) (target, lower float64) {
	target = math.Max(w.Ratio, used-w.High+w.Ratio)
	lower = math.Max(target*0.5, used-w.High)
	return target, lower
}

// Count turns a share into a number of objects out of n, rounded up.
func Count(share float64, n int) int {
	if share <= 0 || n == 0 {
		return 0
	}
	// The product is corrected by the rounding error of the factors, lest 0.1 of 250 be 26.
	return min(n, int(math.Ceil(share*float64(n)-1e-9)))
}

// TenantExcess returns how many bytes a tenant with the given use has to give up to come
// down to High-Ratio of its effective quota, or 0 while it is not above High.
func (w Watermark) TenantExcess(used, effective uint64) uint64 {
	if w.High <= 0 || effective == 0 || float64(used) <= w.High*float64(effective) {
		return 0
	}
	low := (w.High - w.Ratio) * float64(effective)
	if low < 0 {
		low = 0
	}
	return uint64(math.Ceil(float64(used) - low - 1e-6))
}

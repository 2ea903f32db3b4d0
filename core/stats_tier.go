package core

import "github.com/mooncake-go/mooncake-master/core/tier"

// TierStats are the numbers of clients' disks and of promotions. Sizes are bytes.
type TierStats struct {
	FileBytes     int64 // of replicas in files
	CapacityBytes int64 // that clients have reported
	Offloads      []OffloadStat
	Promotions    PromotionStat
}

// OffloadStat counts what became of the objects that one client was to write to its disk.
type OffloadStat struct {
	Client                                          string
	Enqueued, Rejected, Completed, Failed, Canceled uint64
}

// PromotionStat counts promotions, why reads began none, and what became of those that were put off.
type PromotionStat struct {
	InFlight                                                       int64
	Admitted, Completed, CompletedBytes, Expired, Failed, Canceled uint64
	Rare, MemoryFull, TooMany                                      uint64
	Recorded, Retried, RetryRefused, Given, GivenUntried, Dropped  uint64
	GaveUp                                                         uint64 // given up because their client failed again and again
}

func (m *Master) tierStats() TierStats {
	t := &m.tier
	var s TierStats
	t.disks.Each(func(d *tier.Disk) { s.CapacityBytes += d.Capacity() })
	for _, c := range t.disks.Counts() {
		s.Offloads = append(s.Offloads, OffloadStat{
			Client: c.Client.String(), Enqueued: c.Enqueued(), Rejected: c.Rejected(), Completed: c.Completed(), Failed: c.Failed(), Canceled: c.Canceled(),
		})
	}
	p := &t.promoted
	s.Promotions = PromotionStat{
		InFlight: t.promotions.Load(), Admitted: p.admitted.Load(), Completed: p.completed.Load(), CompletedBytes: p.bytes.Load(),
		Expired: p.expired.Load(), Failed: p.failed.Load(), Canceled: p.canceled.Load(),
		Rare: p.rare.Load(), MemoryFull: p.full.Load(), TooMany: p.many.Load(),
		Recorded: t.candidates.Recorded.Load(), Retried: p.retried.Load(), RetryRefused: p.retryRefused.Load(),
		Given: t.candidates.Expired.Load(), GivenUntried: t.candidates.ExpiredUntried.Load(), Dropped: t.candidates.Dropped.Load(),
		GaveUp: p.gaveUp.Load(),
	}
	return s
}

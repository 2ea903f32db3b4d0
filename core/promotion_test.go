package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

func onHit(c *core.Config) { c.Promotion.OnHit, c.Promotion.Admission = true, 1 }

// promoting returns the keys that client 1 is to bring back next.
func promoting(m *mastertest.Master) (keys []string) {
	items, _ := m.PromotionHeartbeat(mastertest.ID(1))
	for _, i := range items {
		keys = append(keys, i.Key)
	}
	return keys
}

func placed(m *mastertest.Master, tenantName, key string, size uint64) errcode.Code {
	_, code := m.StartPromotion(mastertest.ID(1), tenantName, key, size, nil)
	return code
}

func TestFailedPromotionIsTriedAgainThreeTimes(t *testing.T) {
	m := withDisk(t, onHit, mastertest.Strict)
	m.Policies("a", 1000)
	report(m, 1, "a", "k", 100)
	m.Get("a", "k")
	for try := range 4 {
		if got := promoting(m); len(got) != 1 {
			t.Fatalf("try %d: asked to promote %v", try, got)
		}
		expect(t, "place", placed(m, "a", "k", 100), errcode.OK)
		expect(t, "charged", m.Charged("a"), uint64(100))
		expect(t, "fail", m.FailPromotion(mastertest.ID(1), "a", "k"), errcode.OK)
		expect(t, "charged after failure", m.Charged("a"), uint64(0))
		m.Advance(20 * time.Millisecond)
	}
	expect(t, "asked a fifth time", fmt.Sprint(promoting(m)), "[]")
	m.Get("a", "k") // a read begins anew
	expect(t, "after a read", fmt.Sprint(promoting(m)), "[k]")
	s := m.Stats().Tier.Promotions
	expect(t, "admitted, failed, gave up", fmt.Sprint(s.Admitted, s.Failed, s.GaveUp, s.InFlight), "5 4 1 1")
}

func TestPrefetchIsNotAskedForAgain(t *testing.T) {
	m := withDisk(t, onHit)
	report(m, 1, "default", "k", 100)
	client := mastertest.ID(1)
	expect(t, "by a client without the object", m.RegisterPrefetch(mastertest.ID(2), "default", "k"), errcode.UnavailableInStatus)
	m.MountLocalDisk(mastertest.ID(2), true)
	expect(t, "by a client without the object", m.RegisterPrefetch(mastertest.ID(2), "default", "k"), errcode.InvalidParams)
	expect(t, "unknown", m.RegisterPrefetch(client, "default", "x"), errcode.ObjectNotFound)
	expect(t, "prefetch", m.RegisterPrefetch(client, "default", "k"), errcode.OK)
	expect(t, "twice", m.RegisterPrefetch(client, "default", "k"), errcode.PromotionAlreadyExists)
	expect(t, "not in the queue", fmt.Sprint(promoting(m)), "[]")
	expect(t, "place", placed(m, "default", "k", 100), errcode.OK)
	m.FailPromotion(client, "default", "k")
	m.Advance(time.Second)
	expect(t, "not tried again", fmt.Sprint(promoting(m)), "[]")
	m.Start("default", "w", 100)
	report(m, 1, "default", "w", 100)
	expect(t, "while it is written", m.RegisterPrefetch(client, "default", "w"), errcode.ReplicaIsNotReady)
	m.End("default", "w")
	expect(t, "in memory", m.RegisterPrefetch(client, "default", "w"), errcode.PromotionAlreadyExists)
}

// A promotion outlives the replica that it was read from: its client has the bytes.
func TestPromotionOutlivesItsSource(t *testing.T) {
	m := withDisk(t, onHit, mastertest.Strict)
	m.Policies("a", 1000)
	for _, key := range []string{"begun", "placed"} {
		report(m, 1, "a", key, 100)
		m.Get("a", key)
		promoting(m)
	}
	expect(t, "place", placed(m, "a", "placed", 100), errcode.OK)
	for _, key := range []string{"begun", "placed"} {
		m.EvictDiskReplica(mastertest.ID(1), "a", key, object.ReplicaLocalDisk)
	}
	expect(t, "not placed", where(m, "a", "begun"), "-704")
	expect(t, "placed", where(m, "a", "placed"), "-703")
	expect(t, "charged", m.Charged("a"), uint64(100))
	expect(t, "end", m.EndPromotion(mastertest.ID(1), "a", "placed"), errcode.OK)
	expect(t, "ended", where(m, "a", "placed"), "memory")
	expect(t, "charged", m.Charged("a"), uint64(100))
	s := m.Stats().Tier.Promotions
	expect(t, "completed, canceled, under way", fmt.Sprint(s.Completed, s.Canceled, s.InFlight), "1 1 0")
}

// Where the copy on disk has another size than the object had, what comes back is what is there.
func TestPromotionOfAnotherSize(t *testing.T) {
	m := withDisk(t, onHit, mastertest.Strict)
	m.Policies("a", 1000)
	m.MustPut("a", "k", 100)
	m.OffloadHeartbeat(mastertest.ID(1), true)
	report(m, 1, "a", "k", 40)
	m.BatchReplicaClear("a", []string{"k"}, mastertest.ID(1), "s")
	expect(t, "charged", m.Charged("a"), uint64(0))
	m.Get("a", "k")
	expect(t, "with the old size", placed(m, "a", "k", 100), errcode.InvalidParams)
	expect(t, "place", placed(m, "a", "k", 40), errcode.OK)
	expect(t, "end", m.EndPromotion(mastertest.ID(1), "a", "k"), errcode.OK)
	expect(t, "charged", m.Charged("a"), uint64(40))
	m.Remove("a", "k", true)
	expect(t, "charged after removal", m.Charged("a"), uint64(0))
}

func TestPromotionMeetsAFullQuota(t *testing.T) {
	m := withDisk(t, onHit, mastertest.Strict, func(c *core.Config) { c.TenantWatermark = 0 })
	m.Policies("a", 100)
	report(m, 1, "a", "k", 60)
	m.MustPut("a", "other", 50)
	m.Get("a", "k")
	expect(t, "place", placed(m, "a", "k", 60), errcode.TenantQuotaExceeded)
	expect(t, "charged", m.Charged("a"), uint64(50))
	m.Remove("a", "other", true)
	expect(t, "still under way", placed(m, "a", "k", 60), errcode.OK)
	expect(t, "upsert", func() errcode.Code {
		_, code := m.UpsertStart(mastertest.ID(1), "a", "k", 60, mastertest.Config(), nil)
		return code
	}(), errcode.ObjectHasReplicationTask)
	m.Advance(605 * time.Second)
	expect(t, "charged after it has expired", m.Charged("a"), uint64(0))
	expect(t, "expired", m.Stats().Tier.Promotions.Expired, uint64(1))
}

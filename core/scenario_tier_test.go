package core_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/tier"
)

// The commands about clients' disks, offload and promotion.

// takes reads the optional word off, of a client that takes nothing for its disk.
func (c *call) takes() bool { return !slices.Contains(c.args, "off") }

func (s *scenario) DoMountDisk(c call) errcode.Code {
	return s.MountLocalDisk(mastertest.ID(c.client), c.takes())
}

func (s *scenario) DoUnmountDisk(c call) errcode.Code {
	return s.UnmountLocalDisk(mastertest.ID(c.client))
}

// DoReportSsd takes a number of bytes, which may be negative.
func (s *scenario) DoReportSsd(c call) errcode.Code {
	return s.ReportDiskCapacity(mastertest.ID(c.client), signed(c, 0))
}

func signed(c call, i int) int64 {
	if text, negative := strings.CutPrefix(c.args[i], "-"); negative {
		return -int64(parseBytes(c.t, text))
	}
	return int64(parseBytes(c.t, c.args[i]))
}

func (s *scenario) DoPollRemoveAll(c call) string {
	return boolOr(s.PollRemoveAll(mastertest.ID(c.client)))
}

// items writes what a client is given as tenant/key:size.
func items(all []tier.Item, code errcode.Code) []string {
	if code != errcode.OK {
		return []string{strconv.Itoa(int(code))}
	}
	words := []string{}
	for _, i := range all {
		words = append(words, fmt.Sprintf("%s/%s:%s", i.Tenant, i.Key, bytesText(uint64(i.Size))))
	}
	return words
}

// DoOffloadHeartbeat answers what a client is to write to its disk, as tenant/key:size.
func (s *scenario) DoOffloadHeartbeat(c call) []string {
	return items(s.OffloadHeartbeat(mastertest.ID(c.client), c.takes()))
}

// DoNotifyOffload takes tenant/key and size in pairs; a negative size says that it could not be written.
func (s *scenario) DoNotifyOffload(c call) errcode.Code {
	var reports []core.DiskReport
	for i := 0; i+1 < len(c.args); i += 2 {
		tenantName, key := c.key(i)
		reports = append(reports, core.DiskReport{Tenant: tenantName, Key: key, Size: signed(c, i+1), Endpoint: fmt.Sprint("disk", c.client)})
	}
	return s.NotifyOffload(mastertest.ID(c.client), reports)
}

// DoEvictDisk takes tenant/key and the type of replica: 1 shared, 2 local.
func (s *scenario) DoEvictDisk(c call) errcode.Code {
	tenantName, key := c.key(0)
	return s.EvictDiskReplica(mastertest.ID(c.client), tenantName, key, c.kind(1))
}

// DoEvictDiskIfCurrent is DoEvictDisk of the replica that is there, or with the word other of another.
func (s *scenario) DoEvictDiskIfCurrent(c call) string {
	tenantName, key := c.key(0)
	var list object.ReplicaList
	s.AdminReplicas(tenantName, key, &list)
	var id uint64
	for _, r := range list.Replicas {
		if c.kind(1).Covers(object.Kind(r.Location.Index)) {
			id = r.ID
		}
	}
	if len(c.args) > 2 {
		id++
	}
	return boolOr(s.EvictDiskReplicaIfCurrent(mastertest.ID(c.client), tenantName, key, c.kind(1), id))
}

// DoPromotionHeartbeat answers what a client is to bring back from its disk.
func (s *scenario) DoPromotionHeartbeat(c call) []string {
	return items(s.PromotionHeartbeat(mastertest.ID(c.client)))
}

// DoPromotionStart takes tenant/key, size and preferred segments, and answers where it is to be brought.
func (s *scenario) DoPromotionStart(c call) string {
	tenantName, key := c.key(0)
	var preferred []string
	if len(c.args) > 2 {
		preferred = c.list(2)
	}
	r, code := s.StartPromotion(mastertest.ID(c.client), tenantName, key, parseBytes(c.t, c.args[1]), preferred)
	if code != errcode.OK {
		return strconv.Itoa(int(code))
	}
	return endpoints([]object.ReplicaDescriptor{r})
}

func (s *scenario) DoPromotionEnd(c call) errcode.Code {
	tenantName, key := c.key(0)
	return s.EndPromotion(mastertest.ID(c.client), tenantName, key)
}

func (s *scenario) DoPromotionFail(c call) errcode.Code {
	tenantName, key := c.key(0)
	return s.FailPromotion(mastertest.ID(c.client), tenantName, key)
}

func (s *scenario) DoRegisterPrefetch(c call) errcode.Code {
	tenantName, key := c.key(0)
	return s.RegisterPrefetch(mastertest.ID(c.client), tenantName, key)
}

// DoReplicas answers the readable replicas of every kind, without a lease.
func (s *scenario) DoReplicas(c call) []string {
	tenantName, key := c.key(0)
	var list object.ReplicaList
	if code := s.AdminReplicas(tenantName, key, &list); code != errcode.OK {
		return []string{strconv.Itoa(int(code))}
	}
	words := []string{}
	for _, r := range list.Replicas {
		switch l := r.Location; l.Index {
		case object.LocationMemory:
			words = append(words, l.Memory.Buffer.Endpoint)
		case object.LocationNoF:
			words = append(words, "nof:"+l.NoF.Buffer.Endpoint)
		case object.LocationLocalDisk:
			words = append(words, fmt.Sprintf("%s:%s", l.LocalDisk.Endpoint, bytesText(l.LocalDisk.ObjectSize)))
		case object.LocationDisk:
			words = append(words, "file:"+bytesText(l.Disk.ObjectSize))
		}
	}
	slices.Sort(words)
	return words
}

// DoPromotions answers what became of promotions.
func (s *scenario) DoPromotions(call) string {
	p := s.Stats().Tier.Promotions
	return fmt.Sprintf("going %d admitted %d completed %d (%s) failed %d expired %d canceled %d; refused rare %d full %d many %d",
		p.InFlight, p.Admitted, p.Completed, bytesText(p.CompletedBytes), p.Failed, p.Expired, p.Canceled, p.Rare, p.MemoryFull, p.TooMany)
}

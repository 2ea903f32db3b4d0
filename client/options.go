package client

import (
	"time"

	"github.com/mooncake-go/mooncake-master/core/object"
)

// Kept says how a value is to be kept. Options change it.
type Kept struct {
	object.ReplicateConfig
	// Group is the group that the value belongs to, nil for none; of a batch all values do.
	Group *string
	// Checksum has a checksum stored with the value.
	Checksum bool
}

// Option says how a value is to be kept.
type Option func(*Kept)

// Replicas asks for n copies, on different segments; the default is one.
func Replicas(n uint64) Option { return func(k *Kept) { k.ReplicaNum = n } }

// Prefer names the segments to try first.
func Prefer(segments ...string) Option { return func(k *Kept) { k.PreferredSegments = segments } }

// SameNode wants all values of a batch on one node.
func SameNode(k *Kept) { k.PreferAllocInSameNode = true }

// HardPin keeps the value from ever being evicted.
func HardPin(k *Kept) { k.WithHardPin = true }

// SoftPin keeps the value from being evicted before others for ttl; zero means as long as the master thinks right.
func SoftPin(ttl time.Duration) Option {
	return func(k *Kept) {
		k.SoftPinAction, k.SoftPinTTLMs = object.SoftPinEnable, nil
		if ttl > 0 {
			ms := max(uint64(ttl.Milliseconds()), 1)
			k.SoftPinTTLMs = &ms
		}
	}
}

// SoftUnpin takes the soft pin from a value that is replaced.
func SoftUnpin(k *Kept) { k.SoftPinAction, k.SoftPinTTLMs = object.SoftPinDisable, nil }

// Group has the value belong to a group, whose values are evicted together or not at all.
func Group(id string) Option { return func(k *Kept) { k.Group = &id } }

// Holds says what the value is. It is stored and nothing more.
func Holds(what object.DataType) Option { return func(k *Kept) { k.DataType = what } }

// Checksum has a checksum stored with the value, with which readers compare what they read.
func Checksum(k *Kept) { k.Checksum = true }

// kept applies options to n values.
func (c *Client) kept(options []Option, n int) *Kept {
	k := &Kept{ReplicateConfig: object.ReplicateConfig{ReplicaNum: 1, HostID: c.cfg.HostID}, Checksum: c.cfg.Checksum}
	for _, o := range options {
		o(k)
	}
	if k.Group != nil {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = *k.Group
		}
		k.GroupIDs = &ids
	}
	return k
}

package core

import (
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// LedgerOf returns what an object holds of its tenant's charge, and the bytes charged for the works
// that it is busy with.
func (m *Master) LedgerOf(tenantName, key string) (ledger tenant.Ledger, works uint64, ok bool) {
	k, _ := m.request(tenantName)
	if k == nil {
		return ledger, 0, false
	}
	sh, h := k.space.Locate(key)
	sh.RLock()
	defer sh.RUnlock()
	o := sh.GetAny(h, key)
	if o == nil {
		return ledger, 0, false
	}
	return o.Ledger, sh.WorkCharge(o), true
}

// ChargedOf returns what a tenant's account says, with strict tenants or without, in bytes.
func (m *Master) ChargedOf(tenantName string) uint64 {
	k, _ := m.request(tenantName)
	if k == nil {
		return 0
	}
	return k.sum()
}

// OffloadsUnderWay returns how many offloads go on, and how many bytes they are to free.
func (m *Master) OffloadsUnderWay() (n int, frees int64) {
	m.keepers(func(k *keeper) { n += k.space.Numbers().Works[object.SlotOffload] })
	return n, m.tier.leaving.bytes.Load()
}

// AwaitTransfers waits until the master carries nothing any more.
func (m *Master) AwaitTransfers() { m.transfers.wg.Wait() }

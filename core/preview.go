package core

import "github.com/mooncake-go/mooncake-master/core/tenant"

// PreviewPolicies tells what ApplyPolicies would do with the same set and the memory mounted
// now, tenants' objects counted, and does nothing. The set must be valid; else the preview is
// empty.
func (m *Master) PreviewPolicies(set []tenant.Policy) tenant.Preview {
	p, err := m.book.Preview(set, m.pool.CapacityBytes)
	if err != nil {
		m.log.Error("policy not previewed: it was not validated", "error", err)
		return tenant.Preview{}
	}
	for i := range p.Tenants {
		o := &p.Tenants[i]
		if k, _ := m.request(o.TenantID); k != nil {
			o.Objects = k.space.Len()
		}
	}
	return p
}

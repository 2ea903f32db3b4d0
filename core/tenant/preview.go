package tenant

import "slices"

// Outlook is what a set of policies would make of one tenant, all in bytes; a requested quota
// of 0 stands for no policy. Objects is for whoever keeps them to fill in.
type Outlook struct {
	TenantID                        string
	RequestedBefore, RequestedAfter uint64
	EffectiveBefore, EffectiveAfter uint64
	ChargedBytes                    uint64
	Objects                         int
}

// OverBefore tells whether more is charged than the quota in effect now.
func (o *Outlook) OverBefore() bool { return o.ChargedBytes > o.EffectiveBefore }

// OverBy returns the bytes charged beyond the quota in effect afterwards, 0 for none.
func (o *Outlook) OverBy() uint64 { return o.ChargedBytes - min(o.ChargedBytes, o.EffectiveAfter) }

// Preview is what a set of policies would do. The sums of requested quotas are saturated at
// 2^64-1 bytes.
type Preview struct {
	CapacityBytes                   uint64
	RequestedBefore, RequestedAfter uint64
	Tenants                         []Outlook // those with a policy before or after, or a charge; ascending by name
}

// Preview tells what ApplyPolicies and then Recompute would do, and does nothing. The capacity
// is asked for as by Recompute, and the errors are those of ApplyPolicies.
func (b *Book) Preview(set []Policy, capacity func() uint64) (Preview, error) {
	after, err := prepare(set)
	if err != nil {
		return Preview{}, err
	}
	requested := make([]uint64, len(after))
	for i := range after {
		requested[i] = after[i].Quota
	}
	before := b.Snapshots()
	p := Preview{CapacityBytes: capacity(), Tenants: make([]Outlook, 0, max(len(before), len(after)))}
	effective := apportion(p.CapacityBytes, requested)
	for len(before) > 0 || len(after) > 0 {
		var o Outlook
		old := len(before) > 0 && (len(after) == 0 || before[0].TenantID <= after[0].Name)
		if len(after) > 0 && (!old || before[0].TenantID == after[0].Name) {
			o = Outlook{TenantID: after[0].Name, RequestedAfter: after[0].Quota, EffectiveAfter: effective[0]}
			after, effective = after[1:], effective[1:]
		}
		if old {
			s := before[0]
			o.TenantID, o.RequestedBefore, o.EffectiveBefore, o.ChargedBytes = s.TenantID, s.RequestedQuotaBytes, s.EffectiveQuotaBytes, s.ChargedBytes
			before = before[1:]
		}
		p.RequestedBefore = saturate(p.RequestedBefore, o.RequestedBefore)
		p.RequestedAfter = saturate(p.RequestedAfter, o.RequestedAfter)
		p.Tenants = append(p.Tenants, o)
	}
	p.Tenants = slices.Clip(p.Tenants)
	return p, nil
}

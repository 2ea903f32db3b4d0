package tenant

// Policy is what an operator asks for: Quota bytes, from 1 to MaxBytes, for tenant Name.
type Policy struct {
	Name  string
	Quota uint64
}

// Snapshot is the state of one account; the JSON names and their order are those of the admin
// interface.
type Snapshot struct {
	TenantID            string `json:"tenant_id"`
	RequestedQuotaBytes uint64 `json:"requested_quota_bytes"`
	EffectiveQuotaBytes uint64 `json:"effective_quota_bytes"`
	ChargedBytes        uint64 `json:"charged_bytes"`
	AdmissionClosed     bool   `json:"admission_closed"`
	OverQuota           bool   `json:"over_quota"`
	HasExplicitPolicy   bool   `json:"has_explicit_policy"`
}

// Totals are sums over all tenants with a policy: the capacity the last recomputation saw,
// the bytes requested (saturated at 2^64-1) and the bytes in effect.
type Totals struct {
	CapacityBytes  uint64
	RequestedBytes uint64
	EffectiveBytes uint64
}

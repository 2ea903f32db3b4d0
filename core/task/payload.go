package task

import "encoding/json"

// CopyPayload tells a client what to copy. The lease and epoch are of a copy that the master
// wants itself; zero otherwise. The order of the fields is that of the wire.
type CopyPayload struct {
	TenantID  string   `json:"tenant_id"`
	Key       string   `json:"key"`
	Source    string   `json:"source"` // name of a segment
	Targets   []string `json:"targets"`
	LeaseHigh uint64   `json:"dynamic_replication_lease_id_high"`
	LeaseLow  uint64   `json:"dynamic_replication_lease_id_low"`
	Epoch     uint64   `json:"dynamic_replication_version_epoch"`
}

// MovePayload tells a client what to move.
type MovePayload struct {
	TenantID string `json:"tenant_id"`
	Key      string `json:"key"`
	Source   string `json:"source"` // names of segments
	Target   string `json:"target"`
}

// JSON returns the payload as clients read it.
func (p *CopyPayload) JSON() string {
	if p.Targets == nil {
		p.Targets = []string{}
	}
	return text(p)
}

// JSON returns the payload as clients read it.
func (p *MovePayload) JSON() string { return text(p) }

func text(v any) string {
	b, _ := json.Marshal(v) // strings and numbers only
	return string(b)
}

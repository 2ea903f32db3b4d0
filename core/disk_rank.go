package core

import "github.com/mooncake-go/mooncake-master/core/segment"

// diskFree is the share of a client's disk that is free; 1 where there is none, or its size is not
// known.
func (m *Master) diskFree(client segment.UUID) float64 {
	if d := m.tier.disks.Find(client); d != nil {
		return d.FreeRatio()
	}
	return 1
}

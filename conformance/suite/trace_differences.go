package main

import (
	"context"
)

// allowance is a difference that a row of the differences from upstream, or a section of the
// comparison of the releases ("V14"), means.
type allowance struct {
	row, what string
	// match looks at the last operation of a history.
	match func(c *traceConfig, history []*done) bool
	// repair brings both sides into the same state again.
	repair func(ctx context.Context, d *done, ref, ours *side) error
}

var allowances []allowance

func (t *tracer) allow(c *traceConfig, history []*done) *allowance {
	for i := range allowances {
		if allowances[i].match(c, history) {
			return &allowances[i]
		}
	}
	return nil
}

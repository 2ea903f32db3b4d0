// Package transfer carries bytes from one segment to others for a task, through a Carrier that knows how
// segments are reached.
package transfer

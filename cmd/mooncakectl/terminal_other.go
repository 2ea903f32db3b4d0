//go:build !linux

package main

import "os"

// isTerminal reports whether a person is at the other end, as far as can be told without the
// system's own calls.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal reports whether a person is at the other end.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

//go:build !linux

package sdk

import "syscall"

// redirect makes descriptor to a copy of descriptor from.
func redirect(from, to int) error { return syscall.Dup2(from, to) }

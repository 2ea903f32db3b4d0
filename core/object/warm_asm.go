//go:build amd64 || arm64

package object

const canFetch = true

// fetchAll prefetches lines cache lines from each of n addresses on, both at least 1.
//
//go:noescape
func fetchAll(addresses *uintptr, n, lines uintptr)

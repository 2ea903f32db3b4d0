//go:build !amd64 && !arm64

package object

// Other processors have no instruction for it that is known here.
const canFetch = false

func fetchAll(*uintptr, uintptr, uintptr) {}

//go:build !linux

package segment

import "errors"

// mapPages maps memory in pages of a size: only Linux has them.
func mapPages(Pages, int) ([]byte, error) {
	return nil, errors.New("this system has no large pages")
}

// wishPages asks for large pages.
func wishPages([]byte) {}

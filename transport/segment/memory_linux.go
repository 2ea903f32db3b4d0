package segment

import "golang.org/x/sys/unix"

// mapPages maps memory in pages of a size, from those that the system has set aside. All are taken at once, so that none
// is missing later.
func mapPages(pages Pages, size int) ([]byte, error) {
	log := unix.MAP_HUGE_2MB
	if pages == Pages1G {
		log = unix.MAP_HUGE_1GB
	}
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB|log)
}

// wishPages asks for large pages. Not every system grants them.
func wishPages(b []byte) { unix.Madvise(b, unix.MADV_HUGEPAGE) }

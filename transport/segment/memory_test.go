package segment

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestMemoryInLargePages is in such pages where the system has them, and says that it isn't where it hasn't.
func TestMemoryInLargePages(t *testing.T) {
	for _, pages := range []Pages{Pages2M, Pages1G} {
		const size = 3<<20 + 5
		m, err := NewMemoryIn(pages, size)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Bytes()) != size {
			t.Errorf("%d bytes, not %d", len(m.Bytes()), size)
		}
		m.Bytes()[size-1] = 1
		text, err := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-" + strconv.Itoa(int(pages>>10)) + "kB/free_hugepages")
		free, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		switch {
		case err == nil && free >= int(2*Pages2M/pages)+1 && m.Fallback() != nil:
			t.Errorf("%d pages are free: %v", free, m.Fallback())
		case m.Fallback() != nil && !strings.Contains(m.Fallback().Error(), "nr_hugepages"):
			t.Errorf("%v", m.Fallback())
		case m.Fallback() == nil && m.Address()%uint64(pages) != 0:
			t.Errorf("%#x is not where a page begins", m.Address())
		}
		if err := m.Free(); err != nil {
			t.Error(err)
		}
	}
	for size, pages := range map[int]Pages{0: Pages2M, -1: PagesAny, int(^uint(0) >> 1): Pages1G, 5: 4096} {
		if _, err := NewMemoryIn(pages, size); err == nil {
			t.Errorf("%d bytes in pages of %d are mapped", size, pages)
		}
	}
	for text, want := range map[string]Pages{"": PagesAny, "2MB": Pages2M, "1GB": Pages1G} {
		if got, err := ParsePages(text); got != want || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	if _, err := ParsePages("4KB"); err == nil {
		t.Error("pages of 4KB are taken")
	}
}

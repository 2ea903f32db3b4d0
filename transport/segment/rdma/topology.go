package rdma

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

// anywhere is the place of memory that is nowhere in particular: every device will do.
const anywhere = "*"

// matrix says for each place of memory which devices are preferred, and which others there are.
type matrix map[string][][]string

// order returns the devices in the order in which they appear, places sorted, preferred before others: peers number
// them so.
func (m matrix) order() []string {
	var names []string
	for _, place := range slices.Sorted(maps.Keys(m)) {
		for _, level := range m[place] {
			for _, name := range level {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// without returns the matrix of the devices for which keep holds. Every place has its two lists.
func (m matrix) only(keep func(string) bool) matrix {
	less := make(matrix, len(m))
	for place, levels := range m {
		two := [][]string{{}, {}}
		for i, level := range levels {
			for _, name := range level {
				if keep(name) {
					two[min(i, 1)] = append(two[min(i, 1)], name)
				}
			}
		}
		less[place] = two
	}
	return less
}

// choices returns the devices for a place, each with its level: 0 is preferred, 1 the others. Places that the matrix
// doesn't know may use them all.
func (m matrix) choices(place string) (names []string, level []int) {
	levels, known := m[place]
	if !known || place == anywhere {
		all := m.order()
		return all, make([]int, len(all))
	}
	for i, l := range levels {
		for _, name := range l {
			if !slices.Contains(names, name) {
				names, level = append(names, name), append(level, min(i, 1))
			}
		}
	}
	return names, level
}

// nodeOf returns the NUMA node that a device is at, -1 if it is at none.
func nodeOf(sysfs, device string) int {
	text, err := os.ReadFile(filepath.Join(sysfs, "class/infiniband", device, "device/numa_node"))
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		return -1
	}
	return n
}

// nodes returns the NUMA nodes of the machine; at least 0.
func nodes(sysfs string) []int {
	dirs, _ := filepath.Glob(filepath.Join(sysfs, "devices/system/node/node[0-9]*"))
	var all []int
	for _, dir := range dirs {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node")); err == nil {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return []int{0}
	}
	slices.Sort(all)
	return all
}

func place(node int) string { return "cpu:" + strconv.Itoa(node) }

// arrange makes the matrix of a machine: for each node the devices at it are preferred. Devices that are at no node
// are at each.
func arrange(nodes []int, devices []string, at func(device string) int) matrix {
	m := make(matrix)
	for _, node := range nodes {
		two := [][]string{{}, {}}
		for _, d := range devices {
			n := at(d)
			if n == node || n < 0 || !slices.Contains(nodes, n) {
				two[0] = append(two[0], d)
			} else {
				two[1] = append(two[1], d)
			}
		}
		m[place(node)] = two
	}
	return m
}

// The addresses that are good within one place only.
var (
	private   = networks("10.0.0.0/8", "172.16.0.0/12", "100.64.0.0/10")
	linkLocal = networks("169.254.0.0/16", "fe80::/10")
	overlays  = []string{"docker", "veth", "br-", "cni", "flannel", "cali", "cilium", "vxlan", "tunl", "weave", "kube", "virbr", "ovs"}
)

func networks(texts ...string) (all []*net.IPNet) {
	for _, text := range texts {
		_, n, _ := net.ParseCIDR(text)
		all = append(all, n)
	}
	return all
}

func within(all []*net.IPNet, ip net.IP) bool {
	return slices.ContainsFunc(all, func(n *net.IPNet) bool { return n.Contains(ip) })
}

// rank says how good an address of a port is, 0 the best; negative if it is only good for want of another.
func rank(e verbs.GIDEntry, interfaceName func(int) string) int {
	if e.Type == verbs.GIDRoCE1 {
		return -1
	}
	ip := net.IP(e.GID[:])
	v4 := ip.To4() != nil
	near := within(linkLocal, ip) || slices.ContainsFunc(overlays, func(prefix string) bool {
		return e.Interface != 0 && strings.HasPrefix(interfaceName(e.Interface), prefix)
	})
	r := 0
	switch {
	case near && e.Interface != 0:
		r = 3
	case near:
		r = 5
	case v4 && within(private, ip) && e.Interface != 0:
		r = 2
	case v4 && within(private, ip):
		r = 4
	case e.Interface == 0:
		r = 1
	}
	return r
}

// chooseGID returns the entry of a port's table to use, as the released clients choose.
func chooseGID(table []verbs.GIDEntry, index *int, interfaceName func(int) string) (verbs.GIDEntry, error) {
	var best, any *verbs.GIDEntry
	bestRank := 0
	for i := range table {
		e := &table[i]
		if e.GID == (verbs.GID{}) {
			continue
		}
		if index != nil {
			if e.Index == *index {
				return *e, nil
			}
			continue
		}
		if any == nil || e.Index < any.Index {
			any = e
		}
		r := rank(*e, interfaceName)
		if r >= 0 && (best == nil || r < bestRank || r == bestRank && e.Index < best.Index) {
			best, bestRank = e, r
		}
	}
	switch {
	case index != nil:
		return verbs.GIDEntry{}, fmt.Errorf("its GID %d is not set (MC_GID_INDEX)", *index)
	case best != nil:
		return *best, nil
	case any != nil:
		return *any, nil
	}
	return verbs.GIDEntry{}, fmt.Errorf("none of its %d GIDs is set", len(table))
}

func interfaceName(index int) string {
	i, err := net.InterfaceByIndex(index)
	if err != nil {
		return ""
	}
	return i.Name
}

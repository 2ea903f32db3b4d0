package rdma

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"unsafe"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

// Buffer is registered memory as it is published: keys are parallel to the devices published with it.
type Buffer struct {
	Address, Length uint64
	Place           string
	LKeys, RKeys    []uint32
}

// Region is memory that the devices know.
type Region struct {
	a       *Adapter
	address uint64
	length  uint64
	remote  bool
	place   string
	pieces  []piece

	mu   sync.Mutex
	gone bool
	used int
	idle sync.Cond
}

// piece is as much of a region as a device takes at once.
type piece struct {
	address, length uint64
	keys            []verbs.Region // by device
	lkeys           []uint32
}

// Register makes memory known to all devices. It must be outside the Go heap and stay where it is until the region is
// closed. Others may read and write it if remote is true and they are told of it.
func (a *Adapter) Register(mem []byte, remote bool) (*Region, error) {
	if len(mem) == 0 {
		return nil, errors.New("RDMA: there is no memory to register")
	}
	if !a.begin() {
		return nil, ErrClosed
	}
	defer a.end()
	access := verbs.Local | verbs.RelaxedOrdering
	if remote {
		access |= verbs.RemoteRead | verbs.RemoteWrite
	}
	most := uint64(1) << 62
	for _, n := range a.nics {
		if m := n.dev.Limits().MaxRegion; m > 0 {
			most = min(most, m)
		}
	}
	if most > 2<<20 {
		most -= most % (2 << 20) // pieces begin where huge pages do
	}
	at := unsafe.Pointer(unsafe.SliceData(mem))
	r := &Region{a: a, address: uint64(uintptr(at)), length: uint64(len(mem)), remote: remote}
	r.idle.L = &r.mu
	for done := uint64(0); done < r.length; {
		p := piece{address: r.address + done, length: min(most, r.length-done)}
		for _, n := range a.nics {
			key, err := n.dev.Register(unsafe.Add(at, done), p.length, access)
			if err != nil {
				r.pieces = append(r.pieces, p)
				return nil, errors.Join(err, r.withdraw())
			}
			p.keys, p.lkeys = append(p.keys, key), append(p.lkeys, key.LKey())
		}
		r.pieces = append(r.pieces, p)
		done += p.length
	}
	r.place = a.placeOf(mem)
	if err := a.regions.add(r); err != nil {
		return nil, errors.Join(err, r.withdraw())
	}
	return r, nil
}

// placeOf returns where memory is, which is settled once it is registered: pages are there then.
func (a *Adapter) placeOf(mem []byte) string {
	all := nodes(a.o.Sysfs)
	if len(all) == 1 {
		return place(all[0])
	}
	const looks = 16
	where := -1
	for i := range looks {
		node := nodeAt(unsafe.Pointer(&mem[(len(mem)-1)/looks*i]))
		if node < 0 || where >= 0 && node != where {
			return anywhere
		}
		where = node
	}
	return place(where)
}

// Close withdraws a region. When it returns nobody uses the memory any more.
func (r *Region) Close() error {
	if !r.a.regions.remove(r) {
		return nil
	}
	r.mu.Lock()
	r.gone = true
	for r.used > 0 {
		r.idle.Wait()
	}
	r.mu.Unlock()
	return r.withdraw()
}

func (r *Region) withdraw() error {
	var err error
	for _, p := range r.pieces {
		for _, key := range p.keys {
			err = errors.Join(err, key.Close())
		}
	}
	return err
}

func (r *Region) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return false
	}
	r.used++
	return true
}

func (r *Region) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used--; r.used == 0 {
		r.idle.Broadcast()
	}
}

// regions are all regions, by address.
type regions struct {
	mu  sync.RWMutex
	all []*Region
}

func (s *regions) add(r *Region) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.all), func(i int) bool { return s.all[i].address >= r.address })
	if i < len(s.all) && s.all[i].address < r.address+r.length || i > 0 && s.all[i-1].address+s.all[i-1].length > r.address {
		return fmt.Errorf("RDMA: %d bytes at %#x are registered already, wholly or in part", r.length, r.address)
	}
	s.all = slices.Insert(s.all, i, r)
	return nil
}

func (s *regions) remove(r *Region) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.all, r)
	if i < 0 {
		return false
	}
	s.all = slices.Delete(s.all, i, i+1)
	return true
}

// use returns the region that memory lies in, begun, or nil.
func (s *regions) use(address, length uint64) *Region {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := sort.Search(len(s.all), func(i int) bool { return s.all[i].address > address }) - 1
	if i < 0 || length > s.all[i].length || address-s.all[i].address > s.all[i].length-length || !s.all[i].begin() {
		return nil
	}
	return s.all[i]
}

func (s *regions) closeAll() error {
	s.mu.Lock()
	all := slices.Clone(s.all)
	s.mu.Unlock()
	var err error
	for _, r := range all {
		err = errors.Join(err, r.Close())
	}
	return err
}

// piece returns the piece at an address within the region.
func (r *Region) piece(address uint64) *piece {
	i := sort.Search(len(r.pieces), func(i int) bool { return r.pieces[i].address > address }) - 1
	return &r.pieces[i]
}

// Published returns what to publish about regions: the devices whose ports are active, in the order that peers
// count them in, which devices are near which memory, and the regions' keys in the order of the devices.
func (a *Adapter) Published(all []*Region) (devices []Device, matrix map[string][][]string, buffers []Buffer) {
	active := make(map[string]*nic)
	for _, n := range a.nics {
		if n.usable() {
			active[n.name] = n
		}
	}
	m := a.matrix.only(func(name string) bool { return active[name] != nil })
	var order []*nic
	for _, name := range m.order() {
		n := active[name]
		order = append(order, n)
		devices = append(devices, Device{Name: n.name, LID: n.lid, GID: n.gid.GID.String()})
	}
	for _, r := range all {
		for _, p := range r.pieces {
			b := Buffer{Address: p.address, Length: p.length, Place: r.place}
			for _, n := range order {
				b.LKeys = append(b.LKeys, p.keys[n.index].LKey())
				if r.remote {
					b.RKeys = append(b.RKeys, p.keys[n.index].RKey())
				}
			}
			buffers = append(buffers, b)
		}
	}
	return devices, m, buffers
}

//go:build rdma && cgo

package verbs

/*
#cgo LDFLAGS: -libverbs
#cgo noescape mv_post
#cgo nocallback mv_post
#cgo noescape mv_poll
#cgo nocallback mv_poll
#cgo noescape mv_next
#cgo nocallback mv_next
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Built reports whether the program was built with RDMA.
const Built = true

// list calls f with every device that there is, in the library's order.
func list(f func(name string, d *C.struct_ibv_device) bool) error {
	var n C.int
	all, err := C.ibv_get_device_list(&n)
	if all == nil {
		return fmt.Errorf("list of RDMA devices: %w", err)
	}
	defer C.ibv_free_device_list(all)
	for _, d := range unsafe.Slice(all, int(n)) {
		if !f(C.GoString(C.ibv_get_device_name(d)), d) {
			break
		}
	}
	return nil
}

// Names returns the devices that there are.
func Names() ([]string, error) {
	var names []string
	err := list(func(name string, _ *C.struct_ibv_device) bool {
		names = append(names, name)
		return true
	})
	return names, err
}

// device is a Device. The two files are duplicates of the library's descriptors, for the runtime to wait on.
type device struct {
	name             string
	c                *C.struct_mv_device
	limits           Limits
	channel, events  *os.File
	channelC, asyncC syscall.RawConn
	done             atomic.Bool

	// Of Next, made once.
	into  []Completion
	got   int
	woken bool
	ready func(uintptr) bool
}

// number turns the error number of a call into an error.
func number(what string, e C.int) error {
	if e == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", what, syscall.Errno(max(e, -e)))
}

// Open opens a device by its name, with a completion queue of so many entries, at most those it can have.
func Open(name string, completions int) (Device, error) {
	d := &device{name: name, c: (*C.struct_mv_device)(C.calloc(1, C.sizeof_struct_mv_device))}
	found, failed := false, error(nil)
	err := list(func(other string, dev *C.struct_ibv_device) bool {
		if other != name {
			return true
		}
		found = true
		failed = number("opening RDMA device "+name, C.mv_open(d.c, dev, C.int(completions)))
		return false
	})
	switch {
	case err != nil:
	case !found:
		names, _ := Names()
		err = fmt.Errorf("there is no RDMA device %q; there are %q", name, names)
	case failed != nil:
		err = failed
	default:
		err = d.prepare()
	}
	if err != nil {
		d.Shutdown()
		C.mv_close(d.c)
		C.free(unsafe.Pointer(d.c))
		return nil, err
	}
	return d, nil
}

func (d *device) prepare() error {
	var l C.struct_mv_limits
	if err := number("limits of RDMA device "+d.name, C.mv_limits(d.c, &l)); err != nil {
		return err
	}
	d.limits = Limits{uint64(l.region), int(l.qps), int(l.work), int(l.completions), int(l.reads), int(l.reads_master), int(l.ports)}
	var err error
	if d.channel, d.channelC, err = pollable(int(d.c.channel.fd), d.name+" completions"); err != nil {
		return err
	}
	if d.events, d.asyncC, err = pollable(int(d.c.context.async_fd), d.name+" events"); err != nil {
		return err
	}
	d.ready = func(uintptr) bool {
		woken := C.int(0)
		if d.woken {
			woken = 1
		}
		d.woken = true
		d.got = int(C.mv_next(d.c, woken, (*C.struct_mv_completion)(unsafe.Pointer(&d.into[0])), C.int(len(d.into))))
		return d.got != 0
	}
	return nil
}

// pollable makes a descriptor of the library one that the runtime waits for.
func pollable(fd int, name string) (*os.File, syscall.RawConn, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	f := os.NewFile(uintptr(own), name)
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, conn, nil
}

func (d *device) Limits() Limits { return d.limits }

func (d *device) Port(n int) (Port, error) {
	var p C.struct_mv_port
	if err := number(fmt.Sprintf("port %d of RDMA device %s", n, d.name), C.mv_port(d.c, C.int(n), &p)); err != nil {
		return Port{}, err
	}
	return Port{PortState(p.state), int(p.mtu), uint16(p.lid), p.infiniband != 0, uint32(p.message)}, nil
}

func (d *device) GIDs(port int) ([]GIDEntry, error) {
	var table [256]C.struct_mv_gid
	n := C.mv_gids(d.c, C.int(port), &table[0], C.int(len(table)))
	if n < 0 {
		return nil, number(fmt.Sprintf("GIDs of port %d of RDMA device %s", port, d.name), n)
	}
	entries := make([]GIDEntry, n)
	for i := range entries {
		e := &table[i]
		entries[i] = GIDEntry{int(e.index), *(*GID)(unsafe.Pointer(&e.raw)), GIDType(e._type), int(e._interface)}
	}
	return entries, nil
}

func (d *device) Register(at unsafe.Pointer, length uint64, access Access) (Region, error) {
	var mr *C.struct_ibv_mr
	e := C.mv_register(d.c, at, C.uint64_t(length), C.int(access), &mr)
	if err := number(fmt.Sprintf("registering %d bytes with RDMA device %s", length, d.name), e); err != nil {
		if errors.Is(err, syscall.ENOMEM) {
			err = fmt.Errorf("%w (does `ulimit -l` allow so much locked memory?)", err)
		}
		return nil, err
	}
	return &region{mr, uint32(mr.lkey), uint32(mr.rkey)}, nil
}

func (d *device) NewQueuePair(q QueueConfig) (QueuePair, error) {
	var qp *C.struct_ibv_qp
	e := C.mv_queue_pair(d.c, C.int(q.SendWork), C.int(q.ReceiveWork), C.int(q.Elements), C.int(q.Inline), &qp)
	if err := number("queue pair of RDMA device "+d.name, e); err != nil {
		return nil, err
	}
	return &queuePair{qp, uint32(qp.qp_num)}, nil
}

func (d *device) Next(into []Completion, spin int) (int, error) {
	d.into, d.got, d.woken = into, 0, false
	for ; spin > 0; spin-- {
		if n := int(C.mv_poll(d.c, (*C.struct_mv_completion)(unsafe.Pointer(&into[0])), C.int(len(into)))); n > 0 {
			return n, nil
		}
		if d.done.Load() {
			return 0, ErrClosed
		}
		runtime.Gosched()
	}
	err := d.channelC.Read(d.ready)
	switch {
	case d.done.Load():
		return 0, ErrClosed
	case err != nil:
		return 0, fmt.Errorf("completions of RDMA device %s: %w", d.name, err)
	case d.got < 0:
		return 0, fmt.Errorf("completions of RDMA device %s can't be polled", d.name)
	}
	return d.got, nil
}

func (d *device) NextEvent() (Event, error) {
	var e C.struct_mv_event
	var failed C.int
	err := d.asyncC.Read(func(uintptr) bool {
		failed = C.mv_event(d.c, &e)
		return failed != C.EAGAIN
	})
	if d.done.Load() {
		return Event{}, ErrClosed
	}
	if err == nil {
		err = number("events", failed)
	}
	if err != nil {
		return Event{}, fmt.Errorf("events of RDMA device %s: %w", d.name, err)
	}
	event := Event{Name: C.GoString(e.name), Port: int(e.port), Queue: uint32(e.queue)}
	switch e._type {
	case C.IBV_EVENT_QP_FATAL, C.IBV_EVENT_QP_REQ_ERR, C.IBV_EVENT_QP_ACCESS_ERR, C.IBV_EVENT_PATH_MIG_ERR:
		event.Kind = EventQueuePair
	case C.IBV_EVENT_PORT_ERR, C.IBV_EVENT_LID_CHANGE:
		event.Kind = EventPortDown
	case C.IBV_EVENT_PORT_ACTIVE:
		event.Kind = EventPortActive
	case C.IBV_EVENT_DEVICE_FATAL, C.IBV_EVENT_CQ_ERR:
		event.Kind = EventDevice
	}
	return event, nil
}

func (d *device) Shutdown() {
	d.done.Store(true)
	for _, f := range []*os.File{d.channel, d.events} {
		if f != nil {
			f.Close()
		}
	}
}

func (d *device) Close() error {
	e := C.mv_close(d.c)
	C.free(unsafe.Pointer(d.c))
	d.c = nil
	return number("closing RDMA device "+d.name, e)
}

type region struct {
	c          *C.struct_ibv_mr
	lkey, rkey uint32
}

func (r *region) LKey() uint32 { return r.lkey }
func (r *region) RKey() uint32 { return r.rkey }
func (r *region) Close() error { return number("withdrawing registered memory", C.ibv_dereg_mr(r.c)) }

type queuePair struct {
	c *C.struct_ibv_qp
	n uint32
}

func (q *queuePair) Number() uint32 { return q.n }

func (q *queuePair) Init(port int) error {
	return number("initializing a queue pair", C.mv_init(q.c, C.int(port)))
}

func (q *queuePair) Connect(p Path) error {
	c := C.struct_mv_path{
		number: C.uint32_t(p.RemoteNumber), lid: C.uint16_t(p.RemoteLID), port: C.int(p.Port), gid_index: C.int(p.GIDIndex),
		mtu: C.int(p.MTU), hop_limit: C.int(p.HopLimit), traffic_class: C.int(p.TrafficClass), service_level: C.int(p.ServiceLevel),
		reads: C.int(p.Reads), timeout: C.int(p.Timeout), retries: C.int(p.Retries),
	}
	*(*GID)(unsafe.Pointer(&c.gid)) = p.Remote
	return number(fmt.Sprintf("connecting a queue pair to %d of %s", p.RemoteNumber, p.Remote), C.mv_connect(q.c, &c))
}

func (q *queuePair) Fail() error { return number("failing a queue pair", C.mv_fail(q.c)) }

func (q *queuePair) Post(work []Work) (int, error) {
	var posted C.int
	e := C.mv_post(q.c, (*C.struct_mv_work)(unsafe.Pointer(&work[0])), C.int(len(work)), &posted)
	return int(posted), number("posting work", e)
}

func (q *queuePair) Close() error {
	return number("destroying a queue pair", C.ibv_destroy_qp(q.c))
}

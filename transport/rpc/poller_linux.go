package rpc

import (
	"errors"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits for sockets. The runtime's own poller puts a goroutine switch between a packet
// and its answer; here one goroutine waits for all sockets of a loop itself.
//
// Sockets are watched for edges: the kernel tells once when bytes or room have come, and
// whoever is told remembers until the socket said that there is no more. That way nothing has
// to be changed in the kernel when a connection pauses, and sockets that were answered are not
// looked at again by the next wait.
type poller struct {
	fd     int
	waker  int // eventfd
	events [256]unix.EpollEvent
}

const edges = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	p := &poller{fd: fd}
	if p.waker, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	// Each write to an eventfd is an edge; its count is never read.
	if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, p.waker, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(p.waker)}); err != nil {
		p.close()
		return nil, fmt.Errorf("watching an eventfd: %w", err)
	}
	return p, nil
}

func (p *poller) close() {
	unix.Close(p.waker)
	unix.Close(p.fd)
}

func (p *poller) add(fd int) error {
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: edges, Fd: int32(fd)})
}

func (p *poller) remove(fd int) error { return unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, fd, nil) }

// wake ends the wait that is going on, or the next. Any goroutine may call it.
func (p *poller) wake() {
	one := [8]byte{1}
	// It fails only when the count is full, and then an edge is waiting.
	_, _ = unix.Write(p.waker, one[:])
}

// wait returns how many events have come, after at most so many milliseconds; -1 is for ever.
//
// With hold the wait begins without telling the scheduler, whose place the goroutine so keeps:
// while waits are short, taking it away and giving it back costs more than the wait. What is to
// stop the goroutine meanwhile, such as the collector, does it by a signal, which ends the wait.
// A long wait lets go of the place.
func (p *poller) wait(milliseconds int, hold bool) (int, error) {
	if hold {
		short := holdMilliseconds
		if milliseconds >= 0 {
			short = min(short, milliseconds)
		}
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)),
			uintptr(len(p.events)), uintptr(short), 0, 0)
		if n > 0 && errno == 0 || short == milliseconds || errno != 0 {
			return waited(n, errno)
		}
	}
	// A plain system call in which the scheduler takes part, also when there is something
	// already: entering and leaving costs some 40 ns, asking first without waiting ten times that.
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)),
		uintptr(len(p.events)), uintptr(milliseconds), 0, 0)
	return waited(n, errno)
}

// holdMilliseconds is for how long a wait keeps the scheduler's place.
const holdMilliseconds = 1

func waited(n uintptr, errno unix.Errno) (int, error) {
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, fmt.Errorf("waiting for sockets: %w", errno)
}

// errAgain says that a socket has nothing to read or no room to write.
var errAgain = errors.New("not now")

// transfer reads or writes without telling the scheduler: it never blocks. The calls for
// sockets do less than read and write, which are for all kinds of files.
func transfer(trap uintptr, fd int, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, errAgain
		default:
			return 0, errno
		}
	}
}

func readSocket(fd int, b []byte) (int, error)  { return transfer(unix.SYS_RECVFROM, fd, b) }
func writeSocket(fd int, b []byte) (int, error) { return transfer(unix.SYS_SENDTO, fd, b) }
func closeSocket(fd int)                        { unix.Close(fd) }
func closeWrite(fd int) error                   { return unix.Shutdown(fd, unix.SHUT_WR) }

// detach returns a descriptor of the connection's socket that the runtime does not know of.
// The connection is still to be closed.
func detach(nc net.Conn) (int, error) {
	var (
		raw interface {
			Control(func(fd uintptr)) error
		}
		err error
	)
	switch c := nc.(type) { // not what only embeds one of them and may do more
	case *net.TCPConn:
		raw, err = c.SyscallConn()
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	default:
		return -1, errors.ErrUnsupported
	}
	if err != nil {
		return -1, err
	}
	fd, dupErr := -1, error(nil)
	err = raw.Control(func(own uintptr) { fd, dupErr = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(err, dupErr)
}

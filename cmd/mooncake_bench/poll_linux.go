package main

import (
	"errors"
	"fmt"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits for sockets. The runtime's own would put a goroutine switch and a second epoll
// instance on every request; a load generator that shares a core with what it measures should
// cost as little as it can.
type poller struct {
	fd     int
	events []unix.EpollEvent
	coarse bool // no wait in nanoseconds in this kernel
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return &poller{fd: fd, events: make([]unix.EpollEvent, 256)}, nil
}

func (p *poller) close() { unix.Close(p.fd) }

// add watches a socket for reading; index is what wait calls it.
func (p *poller) add(fd, index int) error {
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(index)})
}

// watch changes whether a socket is also watched for writing.
func (p *poller) watch(fd, index int, writing bool) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(index)}
	if writing {
		e.Events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, fd, &e)
}

// wait waits for at most so long and calls ready for each socket that is.
func (p *poller) wait(atMost time.Duration, ready func(index int, writable bool) error) error {
	n, err := p.poll(max(atMost, 0))
	if err != nil {
		return err
	}
	for _, e := range p.events[:n] {
		if err := ready(int(e.Fd), e.Events&unix.EPOLLOUT != 0); err != nil {
			return err
		}
	}
	return nil
}

func (p *poller) poll(atMost time.Duration) (int, error) {
	if !p.coarse {
		ts := unix.NsecToTimespec(int64(atMost))
		n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])),
			uintptr(len(p.events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
			return 0, nil
		case unix.ENOSYS, unix.EPERM:
			p.coarse = true
		default:
			return 0, fmt.Errorf("waiting for sockets: %w", errno)
		}
	}
	n, err := unix.EpollWait(p.fd, p.events, int((atMost+time.Millisecond-1)/time.Millisecond))
	if errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	return max(n, 0), err
}

// dial connects a socket that the runtime knows nothing of.
func dial(addr *net.TCPAddr) (int, error) {
	family, to := unix.AF_INET6, unix.Sockaddr(nil)
	if ip := addr.IP.To4(); ip != nil {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(ip)}
	} else {
		to = &unix.SockaddrInet6{Port: addr.Port, Addr: [16]byte(addr.IP.To16())}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	for {
		err = unix.Connect(fd, to)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		err = errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1), unix.SetNonblock(fd, true))
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("connecting to %v: %w", addr, err)
	}
	return fd, nil
}

// detach takes the socket of an accepted connection away from the runtime.
func detach(nc net.Conn) (int, error) {
	defer nc.Close()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("detaching a socket: %w", err)
	}
	fd, dupErr := -1, error(nil)
	err = raw.Control(func(own uintptr) { fd, dupErr = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, dupErr); err != nil {
		return -1, fmt.Errorf("detaching a socket: %w", err)
	}
	return fd, nil
}

func closeSocket(fd int) { unix.Close(fd) }

// errAgain says that a socket has nothing to read or no room to write.
var errAgain = errors.New("not now")

// transfer reads or writes without telling the scheduler: the sockets never block.
func transfer(trap uintptr, fd int, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
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

func readSocket(fd int, b []byte) (int, error)  { return transfer(unix.SYS_READ, fd, b) }
func writeSocket(fd int, b []byte) (int, error) { return transfer(unix.SYS_WRITE, fd, b) }

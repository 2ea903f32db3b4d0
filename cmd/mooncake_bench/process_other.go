//go:build !linux

package main

import (
	"errors"
	"net"
	"os/exec"
	"time"
)

// Raw sockets, processor clocks of other processes and affinity are Linux's; elsewhere the
// program builds, and only report works.
var errLinux = errors.New("mooncake_bench measures on Linux only")

var errAgain = errors.New("not now")

type poller struct{}

func newPoller() (*poller, error)                                 { return nil, errLinux }
func (p *poller) close()                                          {}
func (p *poller) add(int, int) error                              { return errLinux }
func (p *poller) watch(int, int, bool) error                      { return errLinux }
func (p *poller) wait(time.Duration, func(int, bool) error) error { return errLinux }
func dial(*net.TCPAddr) (int, error)                              { return -1, errLinux }
func detach(net.Conn) (int, error)                                { return -1, errLinux }
func closeSocket(int)                                             {}
func readSocket(int, []byte) (int, error)                         { return 0, errLinux }
func writeSocket(int, []byte) (int, error)                        { return 0, errLinux }
func processCPU(int) (time.Duration, error)                       { return 0, errLinux }
func ownCPU() time.Duration                                       { return 0 }
func pinSelf(int) (func(), error)                                 { return nil, errLinux }
func startPinned(*exec.Cmd, int) error                            { return errLinux }

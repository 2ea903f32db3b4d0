package app

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
)

// The first exchange of NVMe over TCP: each side sends 128 bytes that say which version it speaks.
const (
	icSize     = 128
	icRequest  = 0x00
	icResponse = 0x01
)

// probeNoF asks the target behind an NVMe-oF endpoint for a sign of life. Endpoints are transport ids
// as SPDK writes them, "trtype:TCP traddr:10.0.0.8 trsvcid:4420 subnqn:...". Over TCP a connection is
// begun as a host does; what goes over RDMA can't be seen without its hardware.
func probeNoF(endpoint string, timeout time.Duration) error {
	id := transportID(endpoint)
	if !strings.EqualFold(id["trtype"], "tcp") {
		return core.ErrNotProbed
	}
	if id["traddr"] == "" || id["trsvcid"] == "" {
		return fmt.Errorf("endpoint %q names no traddr and trsvcid", endpoint)
	}
	end := time.Now().Add(timeout)
	c, err := (&net.Dialer{Deadline: end}).Dial("tcp", net.JoinHostPort(id["traddr"], id["trsvcid"]))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(end); err != nil {
		return err
	}
	pdu := make([]byte, icSize)
	pdu[0], pdu[2] = icRequest, icSize
	binary.LittleEndian.PutUint32(pdu[4:], icSize)
	if _, err := c.Write(pdu); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, pdu); err != nil {
		return err
	}
	if pdu[0] != icResponse || binary.LittleEndian.Uint32(pdu[4:]) != icSize {
		return errors.New("what listens there does not speak NVMe over TCP")
	}
	return nil
}

// transportID reads the fields of an endpoint, in lower case by name.
func transportID(endpoint string) map[string]string {
	fields := make(map[string]string)
	for _, field := range strings.Fields(endpoint) {
		name, value, ok := strings.Cut(field, ":")
		if !ok {
			name, value, _ = strings.Cut(field, "=")
		}
		fields[strings.ToLower(name)] = value
	}
	return fields
}

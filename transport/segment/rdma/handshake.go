package rdma

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

// message is what two sides of a connection tell each other.
type message struct {
	LocalGID     string   `json:"local_gid"`
	LocalLID     uint16   `json:"local_lid"`
	LocalNICPath string   `json:"local_nic_path"`
	Payload      string   `json:"payload"`
	PeerNICPath  string   `json:"peer_nic_path"`
	QPNum        []uint32 `json:"qp_num"`
	ReadyAck     *bool    `json:"ready_ack,omitempty"` // nil from those who know no acknowledgement
	ReplyMsg     string   `json:"reply_msg"`           // why a connection is refused
}

// ErrRefused is the class of errors about connections that the other side refuses.
var ErrRefused = errors.New("the other side refuses the connection")

// exchange sends a message to a peer and returns its answer, which is no refusal.
func (m *message) exchange(ctx context.Context, p *Peer) (*message, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	text, err = p.dial(ctx, text)
	if err != nil {
		return nil, err
	}
	answer := new(message)
	if err := json.Unmarshal(text, answer); err != nil {
		return nil, fmt.Errorf("answer to a handshake: %w", err)
	}
	if answer.ReplyMsg != "" {
		return nil, fmt.Errorf("%w: %s", ErrRefused, answer.ReplyMsg)
	}
	return answer, nil
}

// address returns the address in a message, or that of the device which its sender has published.
func (m *message) address(published *Device) (verbs.GID, uint16, error) {
	if m.LocalGID != "" {
		gid, err := verbs.ParseGID(m.LocalGID)
		if err != nil {
			return gid, 0, fmt.Errorf("Invalid peer GID: %s", m.LocalGID)
		}
		return gid, m.LocalLID, nil
	}
	if published == nil {
		return verbs.GID{}, 0, fmt.Errorf("Peer nic not found in that server: %s", m.LocalNICPath)
	}
	gid, err := verbs.ParseGID(published.GID)
	if err != nil {
		return gid, 0, fmt.Errorf("Invalid peer GID: %s", published.GID)
	}
	return gid, published.LID, nil
}

// path is what others call the device.
func (n *nic) path() string { return n.a.Name() + "@" + n.name }

// maxPath is how long a NIC path may be, in bytes, which is kept as long as its endpoint.
const maxPath = 4096

// split cuts a NIC path into the name of a process and that of its device.
func split(path string) (name, device string, ok bool) {
	i := strings.LastIndexByte(path, '@')
	if i <= 0 || i == len(path)-1 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// Answer is the passive side of a handshake: it takes a message of the handshake port and returns the answer.
func (a *Adapter) Answer(ctx context.Context, body []byte) []byte {
	var answer message
	err := ErrClosed
	if a.begin() {
		answer, err = a.answer(ctx, body)
		a.end()
	}
	if err != nil {
		answer = message{QPNum: []uint32{}, ReplyMsg: err.Error()}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return []byte(`{"qp_num":[],"reply_msg":"no answer"}`)
	}
	return text
}

// The refusals that others may look for have the words of the released clients.
const (
	refuseCount  = "QP count mismatch in peer and local endpoints, check MC_MAX_EP_PER_CTX"
	refuseDevice = "Local RDMA context not found for handshake NIC: "
	refusePath   = "Invalid argument: peer nic path inconsistency, expect %s, while got %s"
	refuseAck    = "Received RDMA ready ACK for unconnected endpoint"
	refuseStale  = "Received stale RDMA ready ACK with mismatched peer QP numbers"
)

func (a *Adapter) answer(ctx context.Context, body []byte) (message, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("Invalid argument: %w", err)
	}
	_, device, ok := split(m.PeerNICPath)
	if !ok {
		return m, fmt.Errorf("Invalid argument: peer_nic_path %q is not name@device", m.PeerNICPath)
	}
	n := a.nic(device)
	if n == nil {
		return m, errors.New(refuseDevice + device)
	}
	if own := n.path(); m.PeerNICPath != own {
		return m, fmt.Errorf(refusePath, own, m.PeerNICPath)
	}
	sender, _, ok := split(m.LocalNICPath)
	if len(m.LocalNICPath) > maxPath {
		return m, fmt.Errorf("Invalid argument: local_nic_path is %d bytes long, at most %d are taken", len(m.LocalNICPath), maxPath)
	}
	if !ok || m.LocalNICPath == m.PeerNICPath {
		return m, fmt.Errorf("Invalid argument: local_nic_path %q is not name@device of another process", m.LocalNICPath)
	}
	if m.ReadyAck != nil && *m.ReadyAck {
		return message{QPNum: []uint32{}}, n.acknowledge(&m)
	}
	if len(m.QPNum) != a.o.QueuePairs {
		return m, errors.New(refuseCount)
	}
	var published *Device
	if m.LocalGID == "" {
		published = a.published(ctx, sender, m.LocalNICPath)
	}
	gid, lid, err := m.address(published)
	if err != nil {
		return m, err
	}
	numbers, err := n.accept(&m, gid, lid)
	if err != nil {
		return m, err
	}
	return message{
		LocalGID: n.gid.GID.String(), LocalLID: n.lid, LocalNICPath: m.PeerNICPath, PeerNICPath: m.LocalNICPath,
		QPNum: numbers, ReadyAck: new(bool),
	}, nil
}

// published returns the device that a path leads to, as its owner has published it, or nil.
func (a *Adapter) published(ctx context.Context, owner, path string) *Device {
	a.mu.Lock()
	s := a.service
	a.mu.Unlock()
	if s == nil || s.Devices == nil {
		return nil
	}
	all, err := s.Devices(ctx, owner)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(all, func(d Device) bool { return owner+"@"+d.Name == path })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// accept makes or takes the endpoint to the sender of a request and connects it.
func (n *nic) accept(m *message, gid verbs.GID, lid uint16) ([]uint32, error) {
	n.connecting.Lock()
	defer n.connecting.Unlock()
	n.mu.Lock()
	ep := n.endpoints[m.LocalNICPath]
	n.mu.Unlock()
	if ep != nil && ep.peer != nil {
		if slices.Equal(ep.peer, m.QPNum) {
			return ep.numbers, nil
		}
		n.mu.Lock() // it has started anew
		n.drop(ep, errReplaced)
		n.unlock()
		ep = nil
	}
	if ep == nil {
		n.mu.Lock()
		err := n.admit()
		if err == nil {
			ep = n.newEndpoint(m.LocalNICPath)
		}
		n.unlock()
		if err != nil {
			return nil, err
		}
	}
	err := ep.prepare()
	if err == nil {
		err = ep.join(gid, lid, m.QPNum)
	}
	if err != nil {
		n.mu.Lock()
		n.drop(ep, ep.because(err))
		n.unlock()
		return nil, err
	}
	n.mu.Lock()
	ep.since = n.a.o.Now()
	n.mu.Unlock()
	if m.ReadyAck == nil {
		ep.open()
	}
	return ep.numbers, nil
}

// admit reports whether another endpoint may be made. n.mu is held.
func (n *nic) admit() error {
	if !n.active {
		return fmt.Errorf("RDMA device %s: its port is down", n.name)
	}
	if n.a.base.Err() != nil {
		return ErrClosed
	}
	return n.makeRoom()
}

// acknowledge takes the word of the other side that it is connected.
func (n *nic) acknowledge(m *message) error {
	n.connecting.Lock()
	defer n.connecting.Unlock()
	n.mu.Lock()
	ep := n.endpoints[m.LocalNICPath]
	n.mu.Unlock()
	switch {
	case ep == nil || ep.peer == nil:
		return errors.New(refuseAck)
	case !slices.Equal(ep.peer, m.QPNum):
		return errors.New(refuseStale)
	}
	ep.open()
	return nil
}

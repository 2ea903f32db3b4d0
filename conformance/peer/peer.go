package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// limit bounds one order.
const limit = 55 * time.Second

// peer is what the orders are about.
type peer struct {
	client  *client.Client
	adapter *rdma.Adapter // nil without RDMA
	file    []byte        // random bytes, of which values are pieces
}

// settings are those of "open".
type settings struct {
	Master      string   `json:"master"`
	Metadata    string   `json:"metadata"`
	Tenant      string   `json:"tenant"`
	Protocol    string   `json:"protocol"`
	Devices     []string `json:"devices"`
	DataVersion int      `json:"data_version"`
}

// dial connects a client, with the devices that it needs.
func (p *peer) dial(ctx context.Context, s *settings) (err error) {
	if s.Protocol == segment.ProtocolRDMA {
		o := rdma.Options{Devices: s.Devices, Sysfs: os.Getenv("SOFTVERBS_DIR") + "/sys", Now: time.Now}
		if err := o.Environment(os.Getenv); err != nil {
			return err
		}
		if p.adapter, err = rdma.Open(o); err != nil {
			return err
		}
	}
	p.client, err = client.Dial(ctx, client.Config{Master: s.Master, Metadata: s.Metadata, Tenant: s.Tenant, DataVersion: s.DataVersion, RDMA: p.adapter})
	return err
}

// value is a piece of the file, [offset, size].
type value [2]int

func (p *peer) bytes(v value) []byte { return p.file[v[0] : v[0]+v[1]] }

// obey carries one order out.
func (p *peer) obey(ctx context.Context, o *order) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch o.Method {
	case "values":
		return 0, p.open(o)
	case "open":
		var s settings
		if err := json.Unmarshal(o.Kwargs, &s); err != nil {
			return nil, err
		}
		return 0, p.dial(ctx, &s)
	case "holds":
		return holds()
	case "end":
		return 0, p.end()
	}
	if p.client == nil || p.file == nil {
		return nil, fmt.Errorf("%s before open and values", o.Method)
	}
	return p.move(ctx, o)
}

// move carries out orders about values.
func (p *peer) move(ctx context.Context, o *order) (any, error) {
	var verb, key string
	var keys, segments []string
	var v value
	var many []value
	switch o.Method {
	case "write":
		if err := o.take(&verb, &key, &v[0], &v[1], &segments); err != nil {
			return nil, err
		}
		write := map[string]func(context.Context, string, []byte, ...client.Option) error{"put": p.client.Put, "upsert": p.client.Upsert}[verb]
		if write == nil {
			return nil, fmt.Errorf("%q is neither put nor upsert", verb)
		}
		return 0, write(ctx, key, p.bytes(v), on(segments)...)
	case "write_from":
		if err := o.take(&key, &v[0], &v[1], &segments); err != nil {
			return nil, err
		}
		return 0, p.client.PutFrom(ctx, key, uint64(v[1]), bytes.NewReader(p.bytes(v)), on(segments)...)
	case "write_batch":
		if err := o.take(&keys, &many, &segments); err != nil {
			return nil, err
		}
		return 0, p.writeBatch(ctx, keys, many, segments)
	case "read":
		if err := o.take(&key, &v[0], &v[1]); err != nil {
			return nil, err
		}
		got, err := p.client.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		return verdict(got, p.bytes(v)), nil
	case "read_into":
		if err := o.take(&key, &v[0], &v[1]); err != nil {
			return nil, err
		}
		var got bytes.Buffer
		if _, err := p.client.GetTo(ctx, key, &got); err != nil {
			return nil, err
		}
		return verdict(got.Bytes(), p.bytes(v)), nil
	case "read_batch":
		if err := o.take(&keys, &many); err != nil {
			return nil, err
		}
		return p.readBatch(ctx, keys, many), nil
	case "places":
		if err := o.take(&key); err != nil {
			return nil, err
		}
		return p.places(ctx, key)
	case "clear":
		if err := o.take(&keys); err != nil {
			return nil, err
		}
		failed := []string{}
		for _, key := range keys {
			if err := p.client.Remove(ctx, key, true); err != nil {
				failed = append(failed, err.Error())
			}
		}
		return failed, nil
	}
	return nil, fmt.Errorf("%q is no order", o.Method)
}

// on asks for a replica on each of some segments.
func on(segments []string) []client.Option {
	return []client.Option{client.Replicas(uint64(len(segments))), client.Prefer(segments...)}
}

func (p *peer) writeBatch(ctx context.Context, keys []string, values []value, segments []string) error {
	var items []client.Item
	for i, key := range keys {
		items = append(items, client.Item{Key: key, Value: p.bytes(values[i])})
	}
	return errors.Join(p.client.PutBatch(ctx, items, on(segments)...)...)
}

// readBatch gives the verdicts that are not "same".
func (p *peer) readBatch(ctx context.Context, keys []string, values []value) []string {
	wrong := []string{}
	got, errs := p.client.GetBatch(ctx, keys)
	for i, key := range keys {
		if errs[i] != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", key, errs[i]))
		} else if seen := verdict(got[i], p.bytes(values[i])); seen != "same" {
			wrong = append(wrong, key+": "+seen)
		}
	}
	return wrong
}

// places returns the endpoints of a key's replicas in memory, sorted.
func (p *peer) places(ctx context.Context, key string) ([]string, error) {
	s, err := p.client.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	at := []string{}
	for i := range s.Replicas {
		if l := &s.Replicas[i].Location; l.Index == object.LocationMemory {
			at = append(at, l.Memory.Buffer.Endpoint)
		}
	}
	slices.Sort(at)
	return at, nil
}

// open maps the file that values are pieces of.
func (p *peer) open(o *order) error {
	var name string
	if err := o.take(&name); err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p.file, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	return err
}

// holds counts what the process holds.
func holds() (any, error) {
	files, err := os.ReadDir("/proc/self/fd")
	return map[string]int{"goroutines": runtime.NumGoroutine(), "descriptors": len(files) - 1}, err // one is the directory's
}

// end closes everything.
func (p *peer) end() error {
	var errs []error
	if p.client != nil {
		errs = append(errs, p.client.Close())
	}
	if p.adapter != nil {
		errs = append(errs, p.adapter.Close())
	}
	p.client, p.adapter = nil, nil
	return errors.Join(errs...)
}

// verdict says "same", or what of some bytes is not as it should be.
func verdict(got, want []byte) string {
	if bytes.Equal(got, want) {
		return "same"
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d bytes instead of %d", len(got), len(want))
	}
	first, wrong := 0, 0
	for got[first] == want[first] {
		first++
	}
	for at := 0; at < len(want); at += 4096 {
		end := min(at+4096, len(want))
		if !bytes.Equal(got[at:end], want[at:end]) {
			wrong++
		}
	}
	end := min(first+8, len(want))
	return fmt.Sprintf("wrong from byte %d of %d on, %d blocks of 4096 bytes differ, %x instead of %x", first, len(want), wrong, got[first:end], want[first:end])
}

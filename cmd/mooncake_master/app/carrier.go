package app

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// carrier is what moves bytes between segments for the tasks that the master carries out itself. The zero carrier
// is none.
type carrier struct {
	carrier  *segment.Carrier
	metadata segment.Metadata
	adapter  *rdma.Adapter // nil without RDMA
}

// newCarrier makes the carrier of a master, none where clients carry out everything.
func newCarrier(cfg *Config, l *listeners, log hclog.Logger) (c carrier, err error) {
	t := &cfg.Transfer
	if t.Executor == core.ExecutorClient {
		return carrier{}, nil
	}
	if c.metadata, err = transferMetadata(cfg, l); err != nil {
		return carrier{}, cfg.bad("transfer_metadata", "%w", err)
	}
	if t.Protocol != TransferTCP {
		if c.adapter, err = openAdapter(t, log); err != nil && t.Protocol == TransferRDMA {
			return carrier{}, errors.Join(cfg.bad("transfer_protocol", "%w", err), c.metadata.Close())
		} else if err != nil {
			log.Debug("segments are reached by TCP only", "reason", err)
		}
	}
	c.carrier = segment.NewCarrier(segment.CarrierConfig{Metadata: c.metadata, RDMA: c.adapter, Now: time.Now, Stall: t.Stall})
	return c, nil
}

func openAdapter(t *TransferConfig, log hclog.Logger) (*rdma.Adapter, error) {
	o := rdma.Options{Devices: t.devices(), Sysfs: t.Sysfs, Now: time.Now}
	if err := o.Environment(os.Getenv); err != nil {
		return nil, err
	}
	a, err := rdma.Open(o)
	if err != nil {
		return nil, err
	}
	log.Info("segments are reached by RDMA too")
	return a, nil
}

// close ends what the carrier does; the master has stopped.
func (c *carrier) close() error {
	if c.carrier == nil {
		return nil
	}
	c.carrier.Close()
	err := c.metadata.Close()
	if c.adapter != nil {
		err = errors.Join(err, c.adapter.Close())
	}
	return err
}

// transferMetadata opens the stores in which segments are looked for.
func transferMetadata(cfg *Config, l *listeners) (segment.Metadata, error) {
	addresses := []string{cfg.Transfer.Metadata}
	if cfg.Transfer.Metadata == MetadataAuto {
		addresses = addresses[:0]
		if l.metadata != nil {
			addresses = append(addresses, "http://"+near(l.metadata)+"/metadata")
		}
		if cfg.Metadata.RemoteURL != "" {
			addresses = append(addresses, cfg.Metadata.RemoteURL)
		}
		addresses = append(addresses, segment.P2P)
	}
	var all stores
	for _, address := range addresses {
		m, err := segment.OpenMetadata(address, cfg.Metadata.ClusterID, time.Now)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, m)
	}
	return all, nil
}

// stores are several stores of metadata, of which the first that knows a name counts. They are only read.
type stores []segment.Metadata

var errReadOnly = errors.New("the master publishes nothing")

func (s stores) Descriptor(ctx context.Context, name string) (d *segment.Descriptor, err error) {
	for _, m := range s {
		if d, err = m.Descriptor(ctx, name); err == nil || !errors.Is(err, segment.ErrNotFound) {
			return d, err
		}
	}
	return nil, err
}

func (s stores) Address(ctx context.Context, name string) (address string, err error) {
	for _, m := range s {
		if address, err = m.Address(ctx, name); err == nil || !errors.Is(err, segment.ErrNotFound) {
			return address, err
		}
	}
	return "", err
}

func (s stores) Publish(context.Context, *segment.Descriptor) error { return errReadOnly }
func (s stores) Announce(context.Context, string, string) error     { return errReadOnly }
func (s stores) Withdraw(context.Context, string, string) error     { return errReadOnly }

func (s stores) Close() error {
	var errs []error
	for _, m := range s {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mooncake-go/mooncake-master/plugins/etcd"
	"github.com/mooncake-go/mooncake-master/sdk"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// etcdSize finds out how many tenants an etcd takes in one request, and gives a master many more
// through one whose limit is higher.
func etcdSize(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("etcd-size", flag.ContinueOnError)
	many := flags.Int("tenants", 100_000, "tenants with the limit raised")
	limit := flags.Duration("limit", 2*time.Second, "how long they may take to be in force")
	grow := flags.Int64("grow", 200, "how many MiB the master's memory may grow at most")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := e.usualLimit(ctx); err != nil {
		return err
	}
	m, c, err := e.etcd(ctx, "--max-request-bytes", fmt.Sprint(32<<20))
	if err != nil {
		return err
	}
	defer m.kill()
	defer c.Close()
	if err := write(ctx, c, goodPolicy(0)); err != nil {
		return err
	}
	p, err := e.startOn(ctx, cluster{m})
	if err != nil {
		return err
	}
	defer p.kill()
	direct, err := connectTo(ctx, m)
	if err != nil {
		return err
	}
	doc, err := direct.Load(ctx)
	if err != nil {
		return err
	}
	text := policyOf(*many)
	var stored time.Duration
	err = p.grows(*many, *limit, *grow, func() error {
		began := time.Now()
		_, err := direct.Save(ctx, text, doc.Revision)
		stored = time.Since(began)
		return err
	})
	fmt.Printf("limit raised: %d bytes, stored after %v\n", len(text), stored.Round(time.Millisecond))
	return errors.Join(err, direct.Stop(ctx), p.stop())
}

func connectTo(ctx context.Context, m *member) (*etcd.Connector, error) {
	c := etcd.New(hclog.NewNullLogger())
	return c, c.Configure(ctx, sdk.Config{URI: m.client, ClusterID: etcdCluster, Options: map[string]string{"request_timeout": "10s"}})
}

// policyOf is a document with so many tenants, as the master writes it.
func policyOf(n int) []byte {
	all := make([]policydoc.Tenant, n)
	for i := range all {
		all[i] = policydoc.Tenant{Name: fmt.Sprintf("tenant-%06d", i), Quota: uint64(i+1) << 20}
	}
	return policydoc.Print(all)
}

// usualLimit finds the most tenants that fit into an etcd as it comes, saved by a connector and
// put by anybody, and checks what is said of one more.
func (e *environment) usualLimit(ctx context.Context) error {
	m, c, err := e.etcd(ctx)
	if err != nil {
		return err
	}
	defer m.kill()
	defer c.Close()
	direct, err := connectTo(ctx, m)
	if err != nil {
		return err
	}
	most := func(fits func(text []byte) error) (int, error) {
		var odd error
		n := sort.Search(200_000, func(n int) bool {
			err := fits(policyOf(n + 1))
			if err != nil && !strings.Contains(err.Error(), "request is too large") && !strings.Contains(err.Error(), "max-request-bytes") &&
				!strings.Contains(err.Error(), "larger than max") {
				odd = err
			}
			return err != nil
		})
		return n, odd
	}
	saved, err := most(func(text []byte) error {
		if _, err := c.Delete(ctx, etcdKey); err != nil {
			return err
		}
		_, err := direct.Save(ctx, text, "")
		return err
	})
	if err != nil {
		return err
	}
	put, err := most(func(text []byte) error { _, err := c.Put(ctx, etcdKey, string(text)); return err })
	if err != nil {
		return err
	}
	if _, err := c.Delete(ctx, etcdKey, clientv3.WithPrefix()); err != nil {
		return err
	}
	_, why := direct.Save(ctx, policyOf(saved+1), "")
	fmt.Printf("usual limit: %d tenants (%d bytes) by a save, %d (%d bytes) by a put; beyond it: %v\n", saved, len(policyOf(saved)), put, len(policyOf(put)), why)
	if why == nil || !strings.Contains(why.Error(), "--max-request-bytes") {
		return fmt.Errorf("the error does not name the limit: %w", why)
	}
	return direct.Stop(ctx)
}

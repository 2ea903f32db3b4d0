package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mooncake-go/mooncake-master/plugins/etcd"
	"github.com/mooncake-go/mooncake-master/sdk"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// writer is one operator, who counts a tenant of his own up, one by one.
type writer struct {
	name      string
	saved     uint64 // the last quota that was acknowledged
	conflicts int
	retried   int // answers that left open what became of a change
}

// etcdWriters has operators change one document at the same time, half of them through two
// masters and half by themselves. Every acknowledged change has to be one version of the key
// that changes nothing else.
func etcdWriters(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("etcd-writers", flag.ContinueOnError)
	during := flags.Duration("during", time.Minute, "how long they write")
	operators := flags.Int("operators", 10, "operators, every other one through a master")
	if err := flags.Parse(args); err != nil {
		return err
	}
	m, c, err := e.etcd(ctx)
	if err != nil {
		return err
	}
	defer m.kill()
	defer c.Close()
	const comment = "# this line is nobody's to change\n"
	if err := write(ctx, c, comment+"version: 1\ntenants:\n  - name: tenant-a\n    quota: 1073741824\n"); err != nil {
		return err
	}
	start, err := c.Get(ctx, etcdKey)
	if err != nil {
		return err
	}
	var masters []*process
	for range 2 {
		p, err := e.startOn(ctx, cluster{m})
		if err != nil {
			return err
		}
		defer p.kill()
		masters = append(masters, p)
	}
	direct := etcd.New(hclog.NewNullLogger())
	if err := direct.Configure(ctx, sdk.Config{URI: m.client, ClusterID: etcdCluster, Options: map[string]string{}}); err != nil {
		return err
	}
	work, stop := context.WithTimeout(ctx, *during)
	defer stop()
	all := make([]*writer, *operators)
	errs := make([]error, *operators)
	var wg sync.WaitGroup
	for i := range all {
		all[i] = &writer{name: fmt.Sprint("op-", i)}
		wg.Go(func() {
			for work.Err() == nil && errs[i] == nil {
				if i%2 == 0 {
					errs[i] = all[i].put(masters[i/2%2])
				} else {
					errs[i] = all[i].save(ctx, direct)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, direct.Stop(ctx))...); err != nil {
		return err
	}
	versions, last, err := follow(ctx, c, start.Kvs[0].ModRevision, string(start.Kvs[0].Value))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(last, comment) {
		return fmt.Errorf("the comment is gone: %q", last)
	}
	doc, err := policydoc.Parse([]byte(last))
	if err != nil {
		return err
	}
	holds := map[string]uint64{}
	for _, t := range doc.Tenants {
		holds[t.Name] = t.Quota
	}
	acknowledged, conflicts, retried := 0, 0, 0
	for _, w := range all {
		if holds[w.name] != w.saved {
			return fmt.Errorf("%s: the last acknowledged change is %d, the document says %d", w.name, w.saved, holds[w.name])
		}
		acknowledged, conflicts, retried = acknowledged+int(w.saved), conflicts+w.conflicts, retried+w.retried
		for i, p := range masters {
			if !await(5*time.Second, func() bool { q, err := p.requested(w.name); return err == nil && q == w.saved }) {
				return fmt.Errorf("%s: master %d does not have %d in force", w.name, i, w.saved)
			}
		}
	}
	fmt.Printf("%d changes by %d operators acknowledged, %d versions of the key, each one change; %d conflicts reported to those who save by themselves, %d changes by PUT tried again after an error\n",
		acknowledged, len(all), versions, conflicts, retried)
	if versions != acknowledged {
		return fmt.Errorf("%d changes were acknowledged, the key has %d versions", acknowledged, versions)
	}
	return errors.Join(masters[0].stop(), masters[1].stop())
}

// put makes one change through a master.
func (w *writer) put(p *process) error {
	body := fmt.Sprintf(`{"requested_quota_bytes":%d}`, w.saved+1)
	request, err := http.NewRequest(http.MethodPut, p.http+"/api/v1/tenant_quotas?tenant_id="+w.name, strings.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode == http.StatusOK:
		w.saved++
	case answer.StatusCode == http.StatusInternalServerError && strings.Contains(string(text), "-1503"):
		w.retried++ // the same once more: a quota that is there already makes no version
	default:
		return fmt.Errorf("%s: PUT: %s: %s", w.name, answer.Status, text)
	}
	return nil
}

// save makes one attempt at a change by compare-and-swap.
func (w *writer) save(ctx context.Context, c *etcd.Connector) error {
	doc, err := c.Load(ctx)
	if err != nil {
		return err
	}
	edit, err := policydoc.Set(doc.Content, w.name, w.saved+1)
	if err != nil {
		return err
	}
	switch _, err := c.Save(ctx, edit.Document, doc.Revision); {
	case err == nil:
		w.saved++
	case errors.Is(err, sdk.ErrConflict):
		w.conflicts++
	default:
		return fmt.Errorf("%s: %w", w.name, err)
	}
	return nil
}

// follow goes through all versions of the key since a revision. Each has to differ from the one
// before by one tenant, counted up by one. It returns how many there are, and the last.
func follow(ctx context.Context, c *clientv3.Client, from int64, text string) (int, string, error) {
	end, err := c.Get(ctx, etcdKey)
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	before, err := tenants(text)
	if err != nil {
		return 0, "", err
	}
	n, at := 0, from
	for answer := range c.Watch(ctx, etcdKey, clientv3.WithRev(from+1)) {
		if err := answer.Err(); err != nil {
			return n, "", err
		}
		for _, event := range answer.Events {
			n++
			at, text = event.Kv.ModRevision, string(event.Kv.Value)
			now, err := tenants(text)
			if err != nil {
				return n, "", fmt.Errorf("version %d: %w", at, err)
			}
			changed := 0
			for name, quota := range now {
				if quota != before[name] {
					changed++
					if quota != before[name]+1 {
						return n, "", fmt.Errorf("version %d: %s goes from %d to %d", at, name, before[name], quota)
					}
				}
			}
			if changed != 1 || len(now) < len(before) {
				return n, "", fmt.Errorf("version %d changes %d tenants, %d to %d are there", at, changed, len(before), len(now))
			}
			before = now
		}
		if at >= end.Kvs[0].ModRevision {
			return n, text, nil
		}
	}
	return n, "", errors.New("the history of the key ended early")
}

func tenants(text string) (map[string]uint64, error) {
	doc, err := policydoc.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	all := map[string]uint64{}
	for _, t := range doc.Tenants {
		all[t.Name] = t.Quota
	}
	return all, nil
}

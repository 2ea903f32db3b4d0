package etcd

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// TestClusterMadeAnew loses the data of a cluster whose revisions then begin again, so that
// another document has the same modification revision as the one before.
func TestClusterMadeAnew(t *testing.T) {
	s := startServer(t, nil)
	c := connect(t, s.client)
	mod := put(t, operator(t, s.client), keyOf(t), "old")
	r := watching(t, c)
	r.await(t, "doc old")
	old, err := c.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, operator(t, s.client), keyOf(t)+"/further", "so that the new cluster is behind")
	s.stop()
	if why := r.await(t, "unreachable"); !strings.Contains(why, keyOf(t)) || !strings.Contains(why, s.client+": connect: connection refused") {
		t.Errorf("%q names neither key nor endpoint", why)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	s.restart(t)
	if again := put(t, operator(t, s.client), keyOf(t), "new"); again != mod {
		t.Fatalf("modification revision is %d, want %d as before", again, mod)
	}
	r.await(t, "doc new")
	if _, err := c.Save(t.Context(), []byte("x"), old.Revision); err == nil {
		t.Error("a save over a version of the lost cluster was taken")
	}
}

// TestReconcile has a watch that tells nothing; looking now and then finds what it missed.
func TestReconcile(t *testing.T) {
	c, other := connect(t, shared.client, "reconcile", "100ms"), operator(t, shared.client)
	put(t, other, keyOf(t), "one")
	r := watching(t, c)
	r.await(t, "doc one")
	// A watch that never tells: it begins in the far future.
	l, _, _ := c.current()
	deaf := &recorder{bell: make(chan struct{}, 1)}
	f, err := l.readOnce(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{c: c, link: l, sink: deaf}
	w.tell(f)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		far := f
		far.at += 1_000_000
		ended <- w.follow(ctx, far)
	}()
	put(t, other, keyOf(t), "two")
	deaf.await(t, "doc two")
	remove(t, other, keyOf(t))
	deaf.await(t, "absent")
	cancel()
	if err := <-ended; err == nil {
		t.Error("the watch ended without a reason")
	}
}

func TestCompaction(t *testing.T) {
	c, other := connect(t, shared.client), operator(t, shared.client)
	old := put(t, other, keyOf(t), "one")
	for i := range 20 {
		put(t, other, keyOf(t), fmt.Sprint("version ", i))
	}
	last := put(t, other, keyOf(t), "last")
	if _, err := other.Compact(t.Context(), last, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	l, _, _ := c.current()
	deaf := &recorder{bell: make(chan struct{}, 1)}
	w := &watch{c: c, link: l, sink: deaf}
	f, err := l.readOnce(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	w.tell(f)
	f.at = old
	if err := w.follow(t.Context(), f); err == nil || !strings.Contains(err.Error(), "compacted") {
		t.Errorf("watching from a compacted revision: %v", err)
	}
}

// TestCompactionBehindTheBack makes a watch lag while the revisions it has not seen are
// compacted, by breaking and freezing its connection.
func TestCompactionBehindTheBack(t *testing.T) {
	p, other := newProxy(t, shared.client), operator(t, shared.client)
	c := connectWithin(t, quick, p.address())
	put(t, other, keyOf(t), "one")
	r := watching(t, c)
	r.await(t, "doc one")
	p.freeze()
	var last int64
	for i := range 100 {
		last = put(t, other, keyOf(t), fmt.Sprint("version ", i))
	}
	if _, err := other.Compact(t.Context(), last, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	r.await(t, "unreachable")
	p.thaw()
	r.await(t, "doc version 99")
	if n := len(r.all()); n > 8 {
		t.Errorf("%d events: %q", n, r.all())
	}
}

// TestFrozenMember is about a member that keeps its connections and says nothing, as when its
// process is stopped.
func TestFrozenMember(t *testing.T) {
	one, two, other := newProxy(t, shared.client), newProxy(t, shared.client), operator(t, shared.client)
	c := connectWithin(t, quick, one.address()+","+two.address())
	put(t, other, keyOf(t), "one")
	r := watching(t, c)
	r.await(t, "doc one")
	for i, p := range []*proxy{one, two, one} { // the watch goes through one of them
		p.freeze()
		text := fmt.Sprint("frozen ", i)
		put(t, other, keyOf(t), text)
		r.await(t, "doc "+text)
		p.thaw()
		text = fmt.Sprint("thawed ", i)
		put(t, other, keyOf(t), text)
		r.await(t, "doc "+text)
	}
}

// TestBrokenConnections breaks connections over and over; every document still arrives.
func TestBrokenConnections(t *testing.T) {
	p, other := newProxy(t, shared.client), operator(t, shared.client)
	c := connect(t, p.address())
	r := watching(t, c)
	for i := range 5 {
		p.drop()
		text := fmt.Sprint("version ", i)
		put(t, other, keyOf(t), text)
		r.await(t, "doc "+text)
	}
}

// TestSaveWithoutAnswer loses the answers to saves: what was saved is found out.
func TestSaveWithoutAnswer(t *testing.T) {
	p, other := newProxy(t, shared.client), operator(t, shared.client)
	c := connect(t, p.address())
	revision, err := c.Save(t.Context(), []byte("one"), "")
	if err != nil {
		t.Fatal(err)
	}
	content := func() string {
		got, err := other.Get(context.Background(), keyOf(t))
		if err != nil || len(got.Kvs) != 1 {
			t.Errorf("read %v, %v", got, err)
			return ""
		}
		return string(got.Kvs[0].Value)
	}
	awaitContent := func(want string) {
		for end := time.Now().Add(5 * time.Second); content() != want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("etcd holds %q, want %q", content(), want)
				return
			}
		}
	}
	t.Run("saved", func(t *testing.T) {
		p.cutAfter("document two", func() { awaitContent("document two") })
		next, err := c.Save(t.Context(), []byte("document two"), revision)
		if err != nil || next == revision {
			t.Fatalf("saved as %s after %s: %v", next, revision, err)
		}
		doc, err := c.Load(t.Context())
		if err != nil || doc.Revision != next || string(doc.Content) != "document two" {
			t.Errorf("loaded %+v, %v, want document two at %s", doc, err, next)
		}
		revision = next
	})
	key := keyOf(t)
	t.Run("saved and overwritten", func(t *testing.T) {
		p.cutAfter("document three", func() {
			awaitContent("document three")
			put(t, other, key, "somebody's")
		})
		next, err := c.Save(t.Context(), []byte("document three"), revision)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := c.Load(t.Context())
		if err != nil || string(doc.Content) != "somebody's" || doc.Revision == next {
			t.Errorf("loaded %+v, %v", doc, err)
		}
		revision = doc.Revision
	})
	t.Run("never known", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p.cutAfter("document four", cancel)
		_, err := c.Save(ctx, []byte("document four"), revision)
		unavailableAs(t, err, sdk.Unreachable, "not known whether")
	})
}

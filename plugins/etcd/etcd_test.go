package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/mooncake-go/mooncake-master/sdk"
)

func TestDocumentLife(t *testing.T) {
	c, other := connect(t, shared.client), operator(t, shared.client)
	_, err := c.Load(t.Context())
	unavailableAs(t, err, sdk.Absent, keyOf(t), shared.client)
	if _, err := c.Save(t.Context(), []byte("x"), "7-abc"); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("saving over what is not there: %v", err)
	}
	first, err := c.Save(t.Context(), []byte("one"), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Save(t.Context(), []byte("x"), ""); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("creating what is there: %v", err)
	}
	doc, err := c.Load(t.Context())
	if err != nil || string(doc.Content) != "one" || doc.Revision != first {
		t.Fatalf("loaded %+v, %v, want one at %s", doc, err, first)
	}
	second, err := c.Save(t.Context(), []byte("two"), first)
	if err != nil || second == first {
		t.Fatalf("saved as %s after %s: %v", second, first, err)
	}
	if _, err := c.Save(t.Context(), []byte("x"), first); !errors.Is(err, sdk.ErrConflict) || !strings.Contains(err.Error(), second) {
		t.Errorf("saving over a newer one: %v", err)
	}
	put(t, other, keyOf(t), "three")
	if _, err := c.Save(t.Context(), []byte("x"), second); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("saving over somebody else's: %v", err)
	}
	doc, err = c.Load(t.Context())
	if err != nil || string(doc.Content) != "three" {
		t.Fatalf("loaded %+v, %v", doc, err)
	}
	remove(t, other, keyOf(t))
	if _, err := c.Save(t.Context(), []byte("x"), doc.Revision); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("saving over what is gone: %v", err)
	}
	put(t, other, keyOf(t), "")
	if doc, err = c.Load(t.Context()); err != nil || len(doc.Content) != 0 || doc.Revision == "" {
		t.Errorf("an empty value: %+v, %v", doc, err)
	}
}

func TestWatch(t *testing.T) {
	c, other := connect(t, shared.client), operator(t, shared.client)
	r := watching(t, c)
	r.await(t, "absent")
	put(t, other, keyOf(t), "one")
	r.await(t, "doc one")
	put(t, other, keyOf(t)+"/not", "ours")
	put(t, other, keyOf(t), "two")
	r.await(t, "doc two")
	remove(t, other, keyOf(t))
	if why := r.await(t, "absent"); !strings.Contains(why, keyOf(t)) {
		t.Errorf("%q does not name the key", why)
	}
	garbage := "\xff\x00 : not: [yaml"
	put(t, other, keyOf(t), garbage)
	r.await(t, "doc "+garbage)
	put(t, other, keyOf(t), "")
	r.await(t, "doc ")
}

func TestTooLarge(t *testing.T) {
	small := usual
	small.document = 10
	c, other := connectWithin(t, small, shared.client), operator(t, shared.client)
	r := watching(t, c)
	r.await(t, "absent")
	put(t, other, keyOf(t), "longer than ten")
	if why := r.await(t, "invalid"); !strings.Contains(why, "15 bytes") {
		t.Errorf("%q does not say how large it is", why)
	}
	_, err := c.Load(t.Context())
	unavailableAs(t, err, sdk.Invalid, "15 bytes", keyOf(t))
	if _, err := c.Save(t.Context(), []byte("longer than ten"), ""); err == nil || !strings.Contains(err.Error(), "15 bytes") {
		t.Errorf("saving too much: %v", err)
	}
	put(t, other, keyOf(t), "short")
	r.await(t, "doc short")
}

// TestWatchStorm writes a thousand versions; the last counts.
func TestWatchStorm(t *testing.T) {
	c, other := connect(t, shared.client), operator(t, shared.client)
	r := watching(t, c)
	r.await(t, "absent")
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range 250 {
				put(t, other, keyOf(t), fmt.Sprint("v", n, "-", i))
			}
		})
	}
	wg.Wait()
	put(t, other, keyOf(t), "last")
	r.await(t, "doc last")
}

func TestReconfigured(t *testing.T) {
	c, other := connect(t, shared.client), operator(t, shared.client)
	r := watching(t, c)
	put(t, other, keyOf(t), "of one")
	r.await(t, "doc of one")
	put(t, other, "mooncake-store/another/tenant_quota_policy", "of another")
	if err := c.Configure(t.Context(), sdk.Config{URI: shared.client, ClusterID: "another/"}); err != nil {
		t.Fatal(err)
	}
	r.await(t, "doc of another")
	if err := c.Configure(t.Context(), sdk.Config{URI: shared.client, ClusterID: "a b"}); err == nil {
		t.Error("a bad cluster id was taken")
	}
	put(t, other, "mooncake-store/another/tenant_quota_policy", "still of another")
	r.await(t, "doc still of another")
}

// TestDeadMembers has members in its list that refuse connections, and one that takes them and
// says nothing.
func TestDeadMembers(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	uri := strings.Join([]string{freePort("127.0.0.1"), mute.Addr().String(), "http://" + shared.client + "/", freePort("127.0.0.1")}, ";")
	c, other := connect(t, uri), operator(t, shared.client)
	put(t, other, keyOf(t), "here")
	began := time.Now()
	doc, err := c.Load(t.Context())
	if err != nil || string(doc.Content) != "here" {
		t.Fatalf("loaded %+v, %v", doc, err)
	}
	r := watching(t, c)
	r.await(t, "doc here")
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestNobodyThere(t *testing.T) {
	dead := freePort("127.0.0.1")
	c := connectWithin(t, quick, dead)
	began := time.Now()
	_, err := c.Load(t.Context())
	unavailableAs(t, err, sdk.Unreachable, keyOf(t), dead+": connect: connection refused")
	if took := time.Since(began); took < quick.patience*9/10 || took > 3*quick.patience {
		t.Errorf("it took %s, want about %s", took, quick.patience)
	}
	r := watching(t, c)
	if why := r.await(t, "unreachable"); strings.Count(why, "refused") != 1 {
		t.Errorf("%q says it more than once", why)
	}
	time.Sleep(time.Second) // a few attempts
	if all := r.reasons(); len(slices.Compact(all)) != 1 {
		t.Errorf("the reason changes: %q", r.reasons())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = c.Save(ctx, []byte("x"), "")
	unavailableAs(t, err, sdk.Unreachable, "connection refused")
}

func TestIPv6(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("this machine has no IPv6:", err)
	} else {
		l.Close()
	}
	s := newServer(t.TempDir())
	s.client = freePort("::1")
	s.restart(t)
	t.Cleanup(s.stop)
	put(t, operator(t, s.client), keyOf(t), "six")
	doc, err := connect(t, s.client).Load(t.Context())
	if err != nil || string(doc.Content) != "six" {
		t.Fatalf("loaded %+v, %v", doc, err)
	}
}

// TestRequestLimit saves more than a server takes in one request, in both ways in which it says
// so.
func TestRequestLimit(t *testing.T) {
	c := connect(t, shared.client)
	for _, size := range []int{1600 << 10, 5 << 20} {
		_, err := c.Save(t.Context(), bytes.Repeat([]byte("#"), size), "")
		unavailableAs(t, err, sdk.Invalid, keyOf(t), fmt.Sprint(size, " bytes"), "--max-request-bytes", "1572864")
	}
	_, err := c.Load(t.Context())
	unavailableAs(t, err, sdk.Absent)
	fits := bytes.Repeat([]byte("#"), 1500<<10)
	revision, err := c.Save(t.Context(), fits, "")
	if err != nil {
		t.Fatal(err)
	}
	if doc, err := c.Load(t.Context()); err != nil || doc.Revision != revision || !bytes.Equal(doc.Content, fits) {
		t.Errorf("loaded %d bytes at %s, %v", len(doc.Content), doc.Revision, err)
	}
}

// TestRequestLimitRaised saves, loads and watches what a server with a higher limit takes.
func TestRequestLimitRaised(t *testing.T) {
	s := startServer(t, func(c *embed.Config) { c.MaxRequestBytes = 16 << 20 })
	c := connect(t, s.client, "request_timeout", "5s")
	r := watching(t, c)
	r.await(t, "absent")
	large := bytes.Repeat([]byte("#"), 8<<20)
	revision, err := c.Save(t.Context(), large, "")
	if err != nil {
		t.Fatal(err)
	}
	r.await(t, "doc "+string(large))
	large[0] = '!'
	if _, err := c.Save(t.Context(), large, revision); err != nil {
		t.Fatal(err)
	}
	r.await(t, "doc "+string(large))
}

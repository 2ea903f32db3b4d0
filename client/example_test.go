package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	seg "github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// monotonic is the clock of a master.
type monotonic struct{ start time.Time }

func (c monotonic) Now() int64 { return int64(time.Since(c.start) + time.Hour) }

// master starts a master to which a host lends memory, and returns its address. They live as long as the examples.
var master = sync.OnceValue(func() string {
	cfg := core.Default()
	cfg.ClientActiveTTL = time.Hour // the hosts of the examples don't ping
	m, err := core.New(cfg, core.Deps{Clock: monotonic{time.Now()}, Rand: mastertest.NewRand(1), Log: hclog.NewNullLogger()})
	if err != nil {
		log.Fatal(err)
	}
	s, err := rpc.NewServer(rpc.Options{Now: time.Now})
	if err != nil {
		log.Fatal(err)
	}
	transport.Bind(s, m)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	ctx := context.Background()
	for n := range uint64(2) {
		host, err := segment.NewHost(ctx, segment.HostConfig{Name: "127.0.0.1:1", Metadata: segment.P2P, Bind: "127.0.0.1", Now: time.Now})
		if err != nil {
			log.Fatal(err)
		}
		memory, err := segment.NewMemory(16 << 20)
		if err != nil {
			log.Fatal(err)
		}
		if err := host.Register(ctx, memory); err != nil {
			log.Fatal(err)
		}
		info := seg.Info{ID: mastertest.ID(n + 1), Name: fmt.Sprint("node-", n), Base: memory.Address(), Size: 16 << 20, Endpoint: host.Name(), Protocol: "tcp"}
		if code := m.MountSegment(info, mastertest.ID(n+1)); code != errcode.OK {
			log.Fatal(code)
		}
	}
	return l.Addr().String()
})

func dial(ctx context.Context) *client.Client {
	c, err := client.Dial(ctx, client.Config{Master: master(), Metadata: segment.P2P})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Master: master(), Metadata: segment.P2P})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	if err := c.Put(ctx, "greeting", []byte("hello")); err != nil {
		log.Fatal(err)
	}
	value, err := c.Get(ctx, "greeting")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", value)

	_, err = c.Get(ctx, "nobody")
	fmt.Println(errors.Is(err, errcode.ObjectNotFound))
	// Output:
	// hello
	// true
}

func ExampleClient_PutBatch() {
	ctx := context.Background()
	c := dial(ctx)
	defer c.Close()

	items := []client.Item{{Key: "batch/1", Value: []byte("one")}, {Key: "batch/2", Value: nil}, {Key: "batch/3", Value: []byte("three")}}
	for i, err := range c.PutBatch(ctx, items, client.Replicas(2)) {
		fmt.Println(items[i].Key, errors.Is(err, errcode.InvalidParams))
	}
	values, errs := c.GetBatch(ctx, []string{"batch/3", "batch/1"})
	fmt.Printf("%s %v\n", values, errors.Join(errs...))
	// Output:
	// batch/1 false
	// batch/2 true
	// batch/3 false
	// [three one] <nil>
}

func ExampleClient_PutFrom() {
	ctx := context.Background()
	c := dial(ctx)
	defer c.Close()

	text := strings.TrimSpace(strings.Repeat("streamed ", 3))
	if err := c.PutFrom(ctx, "stream", uint64(len(text)), strings.NewReader(text), client.Checksum); err != nil {
		log.Fatal(err)
	}
	n, err := c.GetTo(ctx, "stream", os.Stdout)
	fmt.Printf("\n%d bytes, %v\n", n, err)

	part := make([]byte, 8)
	if _, err := c.GetRange(ctx, "stream", 9, part); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", part)
	// Output:
	// streamed streamed streamed
	// 26 bytes, <nil>
	// streamed
}

func ExampleClient_Keys() {
	ctx := context.Background()
	c := dial(ctx)
	defer c.Close()

	for _, key := range []string{"list/a", "list/b"} {
		if err := c.Upsert(ctx, key, []byte("x"), client.SoftPin(time.Minute)); err != nil {
			log.Fatal(err)
		}
	}
	keys, err := c.Keys(ctx, "^list/")
	fmt.Println(keys, err)
	n, err := c.RemoveByRegex(ctx, "^list/", true)
	fmt.Println(n, err)
	// Output:
	// [list/a list/b] <nil>
	// 2 <nil>
}

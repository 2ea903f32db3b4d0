package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/transfer"
)

// TestNothingIsLeft has clients do everything, well and badly, and end: no goroutine and no descriptor stays.
func TestNothingIsLeft(t *testing.T) {
	p := newPool(t, 2)
	descriptors := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(d)
	}
	use := func() {
		c := p.client(t, "a")
		ctx := t.Context()
		want := value(5<<20, 1)
		err := errors.Join(
			c.PutFrom(ctx, "k", 5<<20, bytes.NewReader(want)),
			errors.Join(c.PutBatch(ctx, []Item{{"x", want[:10]}, {"y", want[:20]}})...),
		)
		if err != nil {
			t.Fatal(err)
		}
		for name, read := range readers(c, "k") {
			if got, err := read(ctx); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		short, cancel := context.WithCancel(ctx)
		c.interrupt(func(ctx context.Context, _ bool, _ transfer.Place) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		_, one := c.GetTo(short, "k", new(bytes.Buffer))
		two := c.Upsert(short, "x", want)
		if !errors.Is(one, context.Canceled) || !errors.Is(two, context.Canceled) {
			t.Errorf("%v, %v", one, two)
		}
		c.interrupt(func(context.Context, bool, transfer.Place) error { return errors.New("broken") })
		if _, err := c.GetTo(ctx, "k", new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("%v", err)
		}
		if err := c.PutFrom(ctx, "z", 9<<20, bytes.NewReader(want)); err == nil {
			t.Error("a broken stream is taken")
		}
		if _, err := c.RemoveAll(ctx, true); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		p.Step()
	}
	use()
	goroutines, open := 0, 0
	until(t, "quiet", func() bool {
		before := goroutines
		goroutines, open = runtime.NumGoroutine(), descriptors()
		time.Sleep(20 * time.Millisecond)
		return goroutines == before
	})
	for range 20 {
		use()
	}
	until(t, "as many goroutines and descriptors as before", func() bool { return runtime.NumGoroutine() <= goroutines && descriptors() <= open })
}

// TestCloseTakesBackWhatWasGivenUp ends clients at once after writes whose callers have gone while they began: nothing stays
// charged.
func TestCloseTakesBackWhatWasGivenUp(t *testing.T) {
	p := newPool(t, 1)
	items := make([]Item, 3000) // so many that their start takes a while
	for i := range items {
		items[i] = Item{Key: fmt.Sprint("k", i), Value: value(100, 1)}
	}
	for range 20 {
		c := p.client(t, "a")
		gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := errors.Join(c.PutBatch(gone, items)...); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		cancel()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if charged := p.charged("a"); charged > 0 {
			t.Fatalf("%d bytes are charged after the end", charged)
		}
		if err := c.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	}
}

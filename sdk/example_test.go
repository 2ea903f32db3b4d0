package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/mooncake-go/mooncake-master/sdk"
	"github.com/mooncake-go/mooncake-master/sdk/connectortest"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// board is a connector whose source is in memory.
type board struct {
	mu       sync.Mutex
	document []byte        // guarded by mu; nil when there is none
	edition  int           // guarded by mu
	changed  chan struct{} // guarded by mu; closed and replaced by every change
}

func newBoard() *board { return &board{changed: make(chan struct{})} }

func (b *board) Describe() sdk.Description {
	return sdk.Description{Name: "board", Version: "1.0.0", Writable: true, Watches: true}
}

func (b *board) Configure(_ context.Context, config sdk.Config) error {
	if config.URI != "board://kitchen" {
		return sdk.Refuse("uri", "%q is not a board; there is board://kitchen", config.URI)
	}
	return nil
}

// now is the document, and a channel that is closed when it is another one.
func (b *board) now() (sdk.Document, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.document == nil {
		return sdk.Document{}, b.changed, &sdk.Unavailable{Kind: sdk.Absent, Reason: "nothing is written on the board"}
	}
	return sdk.Document{Content: b.document, Revision: strconv.Itoa(b.edition)}, b.changed, nil
}

func (b *board) Load(context.Context) (sdk.Document, error) {
	doc, _, err := b.now()
	return doc, err
}

func (b *board) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	for {
		doc, changed, err := b.now()
		var why *sdk.Unavailable
		if errors.As(err, &why) {
			sink.Unavailable(why)
		} else {
			sink.Snapshot(doc)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (b *board) Save(_ context.Context, document []byte, expected string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	is := ""
	if b.document != nil {
		is = strconv.Itoa(b.edition)
	}
	if is != expected {
		return "", fmt.Errorf("%w: edition %q", sdk.ErrConflict, is)
	}
	b.document = document
	b.edition++
	close(b.changed)
	b.changed = make(chan struct{})
	return strconv.Itoa(b.edition), nil
}

func (b *board) Stop(context.Context) error { return nil }

// A main package is one line: sdk.Serve(newBoard()). In a test the same connector is served in
// the background.
func Example() {
	host, err := connectortest.Start(newBoard())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer host.Close()

	fmt.Println(host.Configure(sdk.Config{URI: "board://cellar"}))
	fmt.Println(host.Configure(sdk.Config{URI: "board://kitchen"}))

	watch := host.Watch("")
	why, _ := watch.AwaitUnavailable()
	fmt.Println(why)

	revision, err := host.Save(policydoc.Print([]policydoc.Tenant{{Name: "team-a", Quota: 64 << 30}}), "")
	fmt.Println(revision, err)
	doc, _ := watch.AwaitSnapshot(nil)
	fmt.Printf("%s\n%s", doc.Revision, doc.Content)

	_, err = host.Save(nil, "another revision")
	fmt.Println(errors.Is(err, sdk.ErrConflict), err)
	// Output:
	// uri: "board://cellar" is not a board; there is board://kitchen
	// <nil>
	// absent: nothing is written on the board
	// 1 <nil>
	// 1
	// version: 1
	//
	// tenants:
	//   - name: "team-a"
	//     quota: 68719476736
	// true the source holds another revision: edition "1"
}

// A refused configuration says what is wrong, field by field.
func ExampleRefuse() {
	err := sdk.Refuse("options.interval", "%q is not a duration, like 2s", "often")
	fmt.Println(err)
	// Output: options.interval: "often" is not a duration, like 2s
}

// A source that can't be used is not an empty policy.
func ExampleUnavailable() {
	err := fmt.Errorf("reading the board: %w", &sdk.Unavailable{Kind: sdk.Auth, Reason: "the kitchen is locked"})
	var why *sdk.Unavailable
	fmt.Println(errors.As(err, &why), why.Kind, why.Reason)
	// Output: true auth the kitchen is locked
}

package admin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	cleanerQueue   = 1024            // segments that may wait
	cleanerTimeout = 5 * time.Second // for one request
)

// RemoteCleaner removes what vanished clients left in a metadata server outside this process.
// Cleanup never blocks: one goroutine sends the requests, and what does not fit into its queue
// is logged and left. A request that fails is logged and not repeated.
type RemoteCleaner struct {
	url    string
	client *http.Client
	log    hclog.Logger

	mu     sync.Mutex // guards closed, so that nothing is sent on the closed channel
	closed bool
	queue  chan [2]string
	cancel context.CancelFunc
	done   chan struct{}
}

// NewRemoteCleaner starts a cleaner for the metadata server at url, for example
// "http://host:8080/metadata". Close ends it.
func NewRemoteCleaner(url string, logger hclog.Logger) *RemoteCleaner {
	ctx, cancel := context.WithCancel(context.Background())
	c := &RemoteCleaner{
		url: url, log: logger, cancel: cancel,
		client: &http.Client{Timeout: cleanerTimeout, Transport: &http.Transport{MaxIdleConns: 1, IdleConnTimeout: idleTimeout}},
		queue:  make(chan [2]string, cleanerQueue), done: make(chan struct{}),
	}
	go c.work(ctx)
	return c
}

// Cleanup asks for the entries of a segment to be removed.
func (c *RemoteCleaner) Cleanup(segmentName, clusterID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	select {
	case c.queue <- cleanupKeys(segmentName, clusterID):
	default:
		c.log.Warn("metadata of an expired client is left behind: too many are waiting", "segment", segmentName, "waiting", cleanerQueue)
	}
}

// Close lets what is queued be sent until the context ends, and returns when the goroutine
// has.
func (c *RemoteCleaner) Close(ctx context.Context) {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.queue)
	}
	c.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	c.cancel()
	<-c.done
	c.client.CloseIdleConnections()
}

func (c *RemoteCleaner) work(ctx context.Context) {
	defer close(c.done)
	for keys := range c.queue {
		for _, key := range keys {
			if ctx.Err() != nil {
				return
			}
			if err := c.delete(ctx, key); err != nil {
				c.log.Warn("metadata of an expired client could not be removed", "key", key, "error", err)
			}
		}
	}
}

func (c *RemoteCleaner) delete(ctx context.Context, key string) error {
	separator := "?"
	if strings.Contains(c.url, "?") {
		separator = "&"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.url+separator+"key="+escape(key), nil)
	if err != nil {
		return err
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if closeErr := answer.Body.Close(); err == nil {
		err = closeErr
	}
	if err == nil && answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
		err = fmt.Errorf("the metadata server answered %s, want 200 or 404", answer.Status)
	}
	return err
}

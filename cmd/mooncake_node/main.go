// Command mooncake_node is a storage node of a Mooncake Store: it lends memory to the pool, which any client puts
// values into and gets them from, over TCP or RDMA. It outlives restarts of the master, carries out the copies
// and moves that the master wants, and moves what it holds to others when it is asked to end.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_node/node"
)

func main() {
	ctx, stop, done := signals(syscall.SIGTERM, os.Interrupt)
	code := run(ctx, stop, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	done()
	os.Exit(code)
}

// run is the whole command without the process: it returns the exit status.
func run(ctx context.Context, stop <-chan struct{}, args []string, env func(string) string, stdout, stderr io.Writer) int {
	o, err := parse(args, env)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "ERROR: "+err.Error())
		return 1
	case o.help:
		fmt.Fprint(stdout, usage())
		return 0
	case o.version:
		fmt.Fprint(stdout, versionText())
		return 0
	}
	n, err := node.New(o.config(stderr))
	if err != nil {
		fmt.Fprintln(stderr, "ERROR: "+o.blame(err).Error())
		return 1
	}
	announced := announce(ctx, n, stdout)
	err = n.Run(ctx, stop)
	announced()
	if err != nil {
		fmt.Fprintln(stderr, "ERROR: "+o.blame(err).Error())
		return 1
	}
	return 0
}

// announce says on stdout where the node is, when its memory is part of the pool. What it returns ends that.
func announce(ctx context.Context, n *node.Node, stdout io.Writer) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-n.Mounted():
			fmt.Fprintln(stdout, addresses(n))
		case <-ctx.Done():
		}
	}()
	return func() { cancel(); <-ended }
}

// addresses is one line that says where the node is.
func addresses(n *node.Node) string {
	line := "mooncake_node is serving: segment " + n.Name() + " endpoint " + n.Endpoint()
	if a := n.HTTPAddr(); a != nil {
		line += " http " + a.String()
	}
	return line
}

// signals returns what the first of some signals closes and the second one ends; a third one ends the process.
func signals(which ...os.Signal) (ctx context.Context, stop <-chan struct{}, done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	first, c := make(chan struct{}), make(chan os.Signal, 2)
	signal.Notify(c, which...)
	go func() { // ends with the second signal or the process
		<-c
		close(first)
		<-c
		signal.Stop(c)
		cancel()
	}()
	return ctx, first, func() { signal.Stop(c); cancel() }
}

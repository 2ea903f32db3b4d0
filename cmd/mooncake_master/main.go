// Command mooncake_master is the master of a Mooncake Store: it keeps the metadata of a shared
// pool of memory, admits writes against tenants' quotas, and answers the released clients.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_master/app"
)

func main() {
	if code, ok := app.Connector(os.Args[1:], os.Stderr); ok {
		os.Exit(code)
	}
	if os.Getenv("GOGC") == "" {
		// The table of objects is memory that the collector does not look into, so collecting
		// twice as often as usual costs little, and garbage takes half as much.
		debug.SetGCPercent(50)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		// An event loop keeps its place in the scheduler while it waits for a moment.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := app.Main(ctx, os.Args[1:], app.System(app.Version), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

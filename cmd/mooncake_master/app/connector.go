package app

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/connector"
	"github.com/mooncake-go/mooncake-master/plugins/etcd"
	"github.com/mooncake-go/mooncake-master/plugins/file"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// Connector is the one subcommand: `mooncake_master connector serve TYPE` is the process of a
// stock connector, started by a master, and `connector guard` the one beside another's. It reports false when the command line is not for it.
func Connector(args []string, stderr io.Writer) (code int, ok bool) {
	if len(args) == 0 || args[0] != "connector" {
		return 0, false
	}
	if len(args) == 3 && args[1] == "serve" {
		switch args[2] { // Serve does not return
		case "file":
			sdk.Serve(file.New(sdk.Logger()))
		case "etcd":
			sdk.Serve(etcd.New(sdk.Logger()))
		}
	}
	if len(args) == 2 && args[1] == "guard" { // a master's, of a connector that is not stock
		connector.Guard(os.Stdin)
		return 0, true
	}
	fmt.Fprintf(stderr, "ERROR: %q is no command; there is: connector serve TYPE, with TYPE one of %s. It is started by a master, not by hand\n",
		strings.Join(args, " "), strings.Join(stock, ", "))
	return 1, true
}

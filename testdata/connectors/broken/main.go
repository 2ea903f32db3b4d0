// Command broken is a connector, made with the SDK, that does one thing wrong, named by its only
// argument (modes.go); with "good" it does nothing wrong. It keeps the document in a file, whose
// URI is file:// and a path. The conformance kit is tested with it and with its sister raw: for
// every way of being wrong there is a case that must fail, and say so.
package main

import (
	"fmt"
	"os"

	"github.com/mooncake-go/mooncake-master/sdk"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: broken MODE")
		os.Exit(2)
	}
	mode := os.Args[1]
	c := newConnector()
	if wrap := authors[mode]; wrap != nil {
		sdk.Serve(wrap(c))
	}
	fmt.Fprintf(os.Stderr, "broken: no mode is called %q\n", mode)
	os.Exit(2)
}

// Command peer is a client of package client in a process of its own, driven by JSON lines as the worker of the
// released clients is: each line read is {"method": name, "args": [...], "kwargs": {...}}, each line
// written {"result": value} or {"error": text}. It ends when its input ends.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// order is one line read.
type order struct {
	Method string            `json:"method"`
	Args   []json.RawMessage `json:"args"`
	Kwargs json.RawMessage   `json:"kwargs"`
}

// told is one line written.
type told struct {
	Result any    `json:"result"`
	Error  string `json:"error,omitempty"`
}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p := &peer{}
	defer p.end()
	answers := json.NewEncoder(os.Stdout)
	answers.Encode(told{Result: "ready"})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			fmt.Fprintln(os.Stderr, "peer:", err)
			return
		}
		if o.Method == "bye" {
			return
		}
		result, err := p.obey(ctx, &o)
		if err != nil {
			answers.Encode(told{Error: err.Error()})
			continue
		}
		answers.Encode(told{Result: result})
	}
}

// take reads the arguments of an order.
func (o *order) take(into ...any) error {
	if len(o.Args) != len(into) {
		return fmt.Errorf("%s takes %d arguments, has %d", o.Method, len(into), len(o.Args))
	}
	for i := range into {
		if err := json.Unmarshal(o.Args[i], into[i]); err != nil {
			return fmt.Errorf("argument %d of %s: %w", i, o.Method, err)
		}
	}
	return nil
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// confirm asks a person at a terminal; where nobody sits the answer is yes.
func (t *tool) confirm(ctx context.Context, question string) error {
	if !isTerminal(t.stdin) {
		return nil
	}
	fmt.Fprintf(t.err, "%s [y/N] ", printable(question))
	answered := make(chan string, 1)
	go func() { // ends with the process if nothing is typed
		line, _ := bufio.NewReader(t.stdin).ReadString('\n')
		answered <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case line := <-answered:
		if line == "y" || line == "yes" {
			return nil
		}
		return failed("not confirmed, nothing was changed")
	case <-ctx.Done():
		fmt.Fprintln(t.err)
		return ctx.Err()
	}
}

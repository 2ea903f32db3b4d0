package main

import (
	"os"
	"strings"
	"testing"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

// TestTheReferenceIsCurrent: the text in docs/connectors is what the contract says now.
func TestTheReferenceIsCurrent(t *testing.T) {
	source, err := os.ReadFile("../connector.proto")
	if err != nil {
		t.Fatal(err)
	}
	is, err := os.ReadFile("../../../../docs/connectors/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(is) != render(parse(string(source))) {
		t.Error("docs/connectors/contract.md is not what connector.proto says; run: go generate ./proto/connector/v1/reference")
	}
}

// TestNothingIsLeftOut: every name of the compiled contract is in the reference, with words.
func TestNothingIsLeftOut(t *testing.T) {
	source, err := os.ReadFile("../connector.proto")
	if err != nil {
		t.Fatal(err)
	}
	text := render(parse(string(source)))
	file := connectorv1.File_connector_proto
	names := 0
	need := func(what string) {
		names++
		if !strings.Contains(text, what) {
			t.Errorf("the reference lacks %q", what)
		}
	}
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		need("\n### " + string(m.Name()) + "\n")
		for j := range m.Fields().Len() {
			need("| `" + string(m.Fields().Get(j).Name()) + "` | ")
		}
	}
	for i := range file.Enums().Len() {
		e := file.Enums().Get(i)
		need("\n### " + string(e.Name()) + "\n")
		for j := range e.Values().Len() {
			need("| `" + string(e.Values().Get(j).Name()) + "` | ")
		}
	}
	methods := file.Services().Get(0).Methods()
	for i := range methods.Len() {
		need("\n### " + string(methods.Get(i).Name()) + "\n\n`" + string(methods.Get(i).Input().Name()) + " → ")
	}
	if names < 60 {
		t.Errorf("only %d names were looked for", names)
	}
	for line := range strings.Lines(text) {
		if strings.HasSuffix(line, "|  |\n") {
			t.Errorf("without words: %s", line)
		}
	}
}

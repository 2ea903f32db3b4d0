package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
	"github.com/mooncake-go/mooncake-master/sdk/conformance"
	"github.com/mooncake-go/mooncake-master/sdk/connectortest"
)

// TestConnector calls the connector as a master does, within this process. FILL IN: what your
// source can do that others can't.
func TestConnector(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	host := connectortest.Serve(t, newConnector(hclog.NewNullLogger()))
	var refused *sdk.ConfigError
	for _, config := range []sdk.Config{
		{URI: "quotas.yaml"},
		{URI: "file://" + path, Options: map[string]string{"interval": "often"}},
		{URI: "file://" + path, Options: map[string]string{"intervall": "1s"}},
	} {
		if err := host.Configure(config); !errors.As(err, &refused) {
			t.Errorf("%v: %v", config, err)
		}
	}
	if err := host.Configure(sdk.Config{URI: "file://" + path, Options: map[string]string{"interval": "10ms"}}); err != nil {
		t.Fatal(err)
	}
	watch := host.Watch("")
	if why, err := watch.AwaitUnavailable(); err != nil || why.Kind != sdk.Absent {
		t.Errorf("%v, %v", why, err)
	}
	if err := os.WriteFile(path, []byte("version: 1\ntenants: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := watch.AwaitSnapshot(func(d sdk.Document) bool { return len(d.Content) > 0 })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Save([]byte("mine"), "another"); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("%v", err)
	}
	saved, err := host.Save([]byte("mine"), doc.Revision)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := host.Load(); err != nil || now.Revision != saved || string(now.Content) != "mine" {
		t.Errorf("%v, %v", now, err)
	}
}

// TestConformance runs the executable against the whole contract, as
// "mooncakectl connector conformance" does.
func TestConformance(t *testing.T) {
	executable := filepath.Join(t.TempDir(), "mooncake-connector-"+name)
	if out, err := exec.Command("go", "build", "-o", executable, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	report, err := conformance.Run(t.Context(), conformance.Options{
		Path: executable,
		// FILL IN: a scratch source, and what changes it: a conformance.Source in Go, or
		// conformance.CommandSource with a script. For file:// the kit knows how.
		URI:      "file://" + filepath.Join(t.TempDir(), "quotas.yaml"),
		Options:  map[string]string{"interval": "20ms"},
		Patience: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := report.Table(&table); err != nil {
		t.Fatal(err)
	}
	if report.Failed() {
		t.Errorf("\n%s", table.String())
	}
	t.Logf("\n%s", table.String())
}

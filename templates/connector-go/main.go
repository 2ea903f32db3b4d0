// Command mooncake-connector-template is where a connector of your own begins. Copy this folder,
// then go through the places marked FILL IN: store.go is your source, connector.go names it and
// reads its settings, the tests come along. What is here works as it is, with a file.
//
// The executable must be called mooncake-connector-<type>; a master finds it in the folder
// --tenant_quota_connector_dir and runs it when --tenant_quota_connector_type=<type>.
package main

import "github.com/mooncake-go/mooncake-master/sdk"

// main is complete: Serve does everything about processes, gRPC, TLS and heartbeats, and does
// not return. Start nothing before it: a master may start the process only to check a
// configuration.
func main() {
	sdk.Serve(newConnector(sdk.Logger()))
}

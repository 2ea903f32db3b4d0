// Command mooncake-connector-http serves the http connector: policies from an HTTP address. A
// master starts it when its flags say --tenant_quota_connector_type=http and
// --tenant_quota_connector_dir names the folder that it is in.
package main

import (
	"github.com/mooncake-go/mooncake-master/plugins/http"
	"github.com/mooncake-go/mooncake-master/sdk"
)

func main() { sdk.Serve(http.New(sdk.Logger())) }

package main

import (
	"runtime"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_master/app"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// versionInfo is what `version` says.
type versionInfo struct {
	Version  string         `json:"version"`
	Protocol int            `json:"connector_protocol"`
	SDK      string         `json:"sdk_version"`
	Go       string         `json:"go_version"`
	Master   *masterVersion `json:"master,omitempty"`
}

type masterVersion struct {
	Display  string `json:"display_version"`
	Protocol string `json:"version"`
}

func versions() versionInfo {
	return versionInfo{Version: app.Version, Protocol: sdk.ProtocolVersion, SDK: sdk.Version, Go: runtime.Version()}
}

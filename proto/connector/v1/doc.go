// Package connectorv1 is the contract between the master and its tenant-quota connectors:
// connector.proto, whose comments are the reference, and the Go code generated from it.
// Authors of connectors in Go use package sdk instead.
package connectorv1

//go:generate sh generate.sh

// Package conformance checks an executable against the contract of a tenant-quota connector
// (proto/connector/v1), whatever language it is written in. It starts the executable as a
// master does, talks to it over the contract alone, changes its source, and reports one result
// per named case:
//
//	report, err := conformance.Run(ctx, conformance.Options{Path: "./mooncake-connector-x", URI: "x://scratch"})
//	if err != nil { ... }           // the options make no sense, or ctx ended
//	report.Table(os.Stdout)
//	if report.Failed() { os.Exit(1) }
//
// Many cases change what is at the source: they need a Source. Without one, URIs that begin
// with file:// are changed by the kit itself (FileSource), and connectors that are writable
// through their own Save. CommandSource runs an author's script. What can't be done is
// reported as skipped with the reason, never as passed.
//
// The source is overwritten: give the kit a scratch one. At the end the kit puts back what it
// found there at the start.
//
// Invariant: every process the kit started is gone when Run returns, its group included. No
// package state; Runs on different sources may go on at the same time.
package conformance

// Package app is the embeddable master: it turns a command line, a configuration file and the
// environment into a Config, and a Config into a running server.
//
// The flags are those of releases 0.3.13 and 0.3.14 of the original, with the syntax of the
// gflags library they use. One table, begun in flags_table.go, is the only place where a flag is
// written down: parsing, defaults, help, configuration-file keys, the list of what has no
// effect yet and docs/flags.md all come from it.
//
// Invariant: a Config returned without error has passed Validate, so that what is built from
// it never needs to look at a flag again. Nothing here keeps state or takes a lock.
package app

import (
	"strconv"
	"time"
)

// Kind is the type of a flag's value.
type Kind uint8

// The kinds. Duration is text for the original; the others are named as there.
const (
	Bool Kind = iota
	Int32
	Int64
	Uint32
	Uint64
	Double
	String
	Duration
)

// String returns the type name as gflags prints it in error messages and help.
func (k Kind) String() string {
	switch k {
	case Bool:
		return "bool"
	case Int32:
		return "int32"
	case Int64:
		return "int64"
	case Uint32:
		return "uint32"
	case Uint64:
		return "uint64"
	case Double:
		return "double"
	default:
		return "string"
	}
}

// Effect says what giving a flag does in this build.
type Effect uint8

const (
	// Active flags do what their help says.
	Active Effect = iota
	// Neutral flags are accepted and need nothing done: they tune machinery of the original
	// that does not exist here. Giving one is not worth a warning.
	Neutral
	// Waiting flags belong to a feature that is not part of this build; a value other than
	// the default is answered with a warning that names the feature.
	Waiting
)

// Flag is one row of the table.
type Flag struct {
	Name    string
	Kind    Kind
	Default string // text form, as printed by help and parsed for the default Config
	Group   Group
	Effect  Effect
	// Key is the name in a configuration file: "" means the flag's own name, "-" that the
	// file can not set it. More names are tried in order, separated by blanks.
	Key string
	// Feature names what a Waiting flag waits for, and for a Neutral one why nothing is
	// needed.
	Feature string
	Help    string

	// unit turns a whole number into a time.Duration field.
	unit time.Duration
	// bind returns the address of the Config field the value goes to; nil drops the value.
	bind func(*Config) any
}

// Group is a section of the help text and of the documentation.
type Group string

// The groups, in the order they are printed.
const (
	GroupGeneral   Group = "General"
	GroupRPC       Group = "RPC listener"
	GroupAdmin     Group = "Admin HTTP and metrics"
	GroupMetadata  Group = "HTTP metadata server"
	GroupObjects   Group = "Objects"
	GroupEviction  Group = "Eviction"
	GroupClients   Group = "Clients"
	GroupTenants   Group = "Tenants"
	GroupPlacement Group = "Placement and storage"
	GroupHA        Group = "High availability"
	GroupSnapshot  Group = "Snapshots"
	GroupTasks     Group = "Tasks"
	GroupOffload   Group = "Local disk, promotion, dynamic replication"
	GroupEvents    Group = "KV events"
	GroupNoF       Group = "NVMe-oF"
	GroupCXL       Group = "CXL and memory arenas"
	GroupWeights   Group = "Weights"
	GroupLog       Group = "Logging"
	GroupBuiltin   Group = "Command line itself"
)

var groups = []Group{
	GroupGeneral, GroupRPC, GroupAdmin, GroupMetadata, GroupObjects, GroupEviction, GroupClients,
	GroupTenants, GroupPlacement, GroupHA, GroupSnapshot, GroupTasks, GroupOffload, GroupEvents,
	GroupNoF, GroupCXL, GroupWeights, GroupLog, GroupBuiltin,
}

// Source is where a value came from.
type Source uint8

// The sources.
const (
	FromDefault Source = iota
	FromCommandLine
	FromFlagFile
	FromEnvironment
	FromConfigFile
)

// Origin is where the value of one flag came from and how it was written there.
type Origin struct {
	Source Source
	File   string // of FromFlagFile and FromConfigFile
	Line   int
	Key    string // the name used there
	Text   string
}

// Given reports whether somebody wrote the value down, be it the default.
func (o Origin) Given() bool { return o.Source != FromDefault }

// String names the place for an error message: "--rpc_port=x", "m.yaml:3: rpc_port: x".
func (o Origin) String() string {
	switch o.Source {
	case FromFlagFile:
		return o.File + ":" + strconv.Itoa(o.Line) + ": --" + o.Key + "=" + o.Text
	case FromConfigFile:
		return o.File + ":" + strconv.Itoa(o.Line) + ": " + o.Key + ": " + o.Text
	case FromEnvironment:
		return "FLAGS_" + o.Key + "=" + o.Text
	default:
		return "--" + o.Key + "=" + o.Text
	}
}

var byName = func() map[string]*Flag {
	m := make(map[string]*Flag, len(table))
	for i := range table {
		m[table[i].Name] = &table[i]
	}
	return m
}()

// Flags returns the table, in the order of the documentation. Callers must not change it.
func Flags() []Flag { return table }

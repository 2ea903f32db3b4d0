package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/core/connector"
)

// about is what `info` and `describe` say.
type about struct {
	Name          string          `json:"name"`
	Version       string          `json:"version"`
	SDKVersion    string          `json:"sdk_version"`
	Protocol      int             `json:"protocol"`
	Writable      bool            `json:"writable"`
	Watches       bool            `json:"watches"`
	AbsentMeans   string          `json:"absent_means"`
	OptionsSchema json.RawMessage `json:"options_schema"` // null when there is none; a string when it is not JSON
	Path          string          `json:"path,omitempty"`
	SHA256        string          `json:"sha256,omitempty"`
}

func aboutOf(o *connector.Once) about {
	a := o.About()
	out := about{
		Name: a.Name, Version: a.Version, SDKVersion: a.SDKVersion, Protocol: a.Protocol,
		Writable: a.Writable, Watches: a.Watches, AbsentMeans: "error",
	}
	if a.AbsentIsEmpty {
		out.AbsentMeans = "empty"
	}
	switch {
	case a.OptionsSchema == "":
		out.OptionsSchema = json.RawMessage("null")
	case json.Valid([]byte(a.OptionsSchema)):
		out.OptionsSchema = json.RawMessage(a.OptionsSchema)
	default:
		out.OptionsSchema, _ = json.Marshal(a.OptionsSchema) // a string can't fail
	}
	return out
}

func (t *tool) connectorInfo() *cobra.Command {
	dir, sum, level := "", "", "warn"
	cmd := &cobra.Command{
		Use:     "info PATH|TYPE",
		Short:   "Start a connector, show what it says of itself and which options it takes, and stop it",
		Example: "  mooncakectl connector info file\n  mooncakectl connector info ./mooncake-connector-http",
		Args:    takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := find(args[0], dir, sum)
			o, err := t.open(cmd.Context(), what, level)
			if err != nil {
				return err
			}
			defer o.Close()
			a := aboutOf(o)
			if a.Path = what.path; a.Path != "" {
				if a.SHA256, err = checksum(a.Path); err != nil {
					return err
				}
			}
			return t.printAbout(a)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder of executables mooncake-connector-TYPE")
	cmd.Flags().StringVar(&sum, "sha256", "", "SHA-256 that the executable must have, the master's --tenant_quota_connector_sha256")
	cmd.Flags().StringVar(&level, "log-level", level, "which of the connector's log lines to show: trace, debug, info, warn, error, off")
	return cmd
}

func (t *tool) printAbout(a about) error {
	if t.json {
		return t.printJSON(a)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	start := "a source without a document keeps the master from starting"
	if a.AbsentMeans == "empty" {
		start = "a source without a document is an empty policy when the master starts"
	}
	rows := [][]cell{
		{left("name"), left(a.Name)},
		{left("version"), left(a.Version)},
		{left("SDK"), left(orDash(a.SDKVersion))},
		{left("protocol"), left(fmt.Sprint(a.Protocol))},
		{left("writable"), left(yes[a.Writable])},
		{left("watches"), left(yes[a.Watches])},
		{left("absent"), left(start)},
	}
	if a.Path != "" {
		rows = append(rows, []cell{left("path"), left(a.Path)}, []cell{left("sha256"), left(a.SHA256)})
	}
	t.table(nil, rows)
	fmt.Fprintln(t.out)
	t.printOptions(a.OptionsSchema)
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// printOptions writes a JSON Schema the way people want to read it; what is not understood is
// written as it came.
func (t *tool) printOptions(schema json.RawMessage) {
	if string(schema) == "null" {
		fmt.Fprintln(t.out, "it takes no options")
		return
	}
	var s struct {
		Properties map[string]struct {
			Type        any    `json:"type"`
			Description string `json:"description"`
			Default     any    `json:"default"`
			Enum        []any  `json:"enum"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		fmt.Fprintf(t.out, "options: %s\n", schema)
		return
	}
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	var rows [][]cell
	for _, name := range names {
		p := s.Properties[name]
		kind, value := "string", "-"
		if p.Type != nil {
			kind = fmt.Sprint(p.Type)
		}
		if len(p.Enum) > 0 {
			var words []string
			for _, v := range p.Enum {
				words = append(words, fmt.Sprint(v))
			}
			kind = strings.Join(words, "|")
		}
		if p.Default != nil {
			value = fmt.Sprint(p.Default)
		} else if slices.Contains(s.Required, name) {
			value = "required"
		}
		rows = append(rows, []cell{left(name), left(kind), left(value), left(p.Description)})
	}
	t.table([]string{"OPTION", "TYPE", "DEFAULT", "DESCRIPTION"}, rows)
}

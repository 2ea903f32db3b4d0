package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (t *tool) connectorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "connector", Aliases: []string{"connectors"}, Short: "See how the master's connector is; list, run and check connectors"}
	group(cmd)
	cmd.AddCommand(t.connectorStatus(), t.connectorList(), t.connectorInfo(), t.connectorExec(), t.connectorChecksum(), t.connectorConformance())
	return cmd
}

// connectorStatus is what the master says of its connector; JSON output passes everything on
// as it came.
type connectorStatus struct {
	Type          string     `json:"type"`
	State         string     `json:"state"`
	Since         *time.Time `json:"since"`
	LastError     string     `json:"last_error"`
	LastErrorTime *time.Time `json:"last_error_time"`
	Restarts      uint64     `json:"restarts"`
	Policy        struct {
		Revision     string     `json:"revision"`
		ContentHash  string     `json:"content_hash"`
		InForceSince *time.Time `json:"in_force_since"`
		Tenants      int        `json:"tenants"`
	} `json:"policy"`
	Held *struct {
		Revision string `json:"revision"`
	} `json:"held"`
}

func (t *tool) connectorStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how the running master's connector and its source are",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var raw json.RawMessage
			if err := t.data(cmd.Context(), http.MethodGet, "/api/v1/tenant_quota_connector", nil, &raw); err != nil {
				return err
			}
			if t.json {
				return t.printJSON(raw)
			}
			var s connectorStatus
			if err := json.Unmarshal(raw, &s); err != nil {
				return failed("the master's answer is not understood: %v", err)
			}
			color := yellow
			if s.State == "ready" {
				color = green
			}
			rows := [][]cell{
				{left("connector"), left(s.Type)},
				{left("state"), left(s.State + since(s.Since)).in(color)},
				{left("restarts"), left(fmt.Sprint(s.Restarts))},
				{left("policy"), left(fmt.Sprintf("revision %s, %s%s", none(s.Policy.Revision), plural(s.Policy.Tenants, "tenant"), since(s.Policy.InForceSince)))},
			}
			if s.LastError != "" {
				rows = append(rows, []cell{left("last error"), left(s.LastError + at(s.LastErrorTime))})
			}
			if s.Held != nil && s.Held.Revision != "" {
				rows = append(rows, []cell{left("held back"), left("revision " + s.Held.Revision + "; mooncakectl policy confirm " + quoted(s.Held.Revision) + " puts it in force").in(yellow)})
			}
			t.table(nil, rows)
			return nil
		},
	}
}

func since(when *time.Time) string {
	if when == nil {
		return ""
	}
	return ", since " + when.UTC().Format("2006-01-02 15:04:05Z")
}

func at(when *time.Time) string {
	if when == nil {
		return ""
	}
	return " (" + when.UTC().Format("2006-01-02 15:04:05Z") + ")"
}

// pairs reads NAME=VALUE options.
func pairs(list []string) (map[string]string, error) {
	options := map[string]string{}
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, "=")
		if _, twice := options[name]; twice {
			return nil, misused("--option %s: the option %s is given twice", pair, name)
		}
		if !ok || name == "" {
			return nil, misused("--option %s: want NAME=VALUE", pair)
		}
		options[name] = value
	}
	return options, nil
}

package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

const policyPath = "/api/v1/tenant_quota_policy"

func (t *tool) policyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Check, plan and apply whole policies; see what is and was in force"}
	group(cmd)
	cmd.AddCommand(t.policyCheck(), t.policyShow(), t.policyPlan(), t.policyApply(), t.policyConfirm(), t.policyHistory())
	return cmd
}

// policyInForce is what the master says of a document it holds or reads.
type policyInForce struct {
	Revision    string     `json:"revision"`
	ContentHash string     `json:"content_hash"`
	Origin      string     `json:"origin,omitempty"`
	Since       *time.Time `json:"in_force_since,omitempty"`
	Tenants     *int       `json:"tenants,omitempty"`
	Document    string     `json:"document"`
	Error       string     `json:"error,omitempty"`
}

func (t *tool) policyShow() *cobra.Command {
	source := false
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the document in force, or the one at the source",
		Long: `Print the document in force, byte for byte, so that it can be edited and applied; its revision goes
to standard error. With --source the document at the source is read, valid or not.`,
		Example: "  mooncakectl policy show > tenants.yaml",
		Args:    takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := policyPath
			if source {
				path += "?at=source"
			}
			var p policyInForce
			if err := t.data(cmd.Context(), http.MethodGet, path, nil, &p); err != nil {
				return err
			}
			if t.json {
				return t.printJSON(p)
			}
			fmt.Fprint(t.out, p.Document)
			about := "revision " + none(p.Revision)
			if p.Origin != "" {
				about += ", from " + p.Origin
			}
			if p.Since != nil {
				about += ", in force since " + p.Since.Format(time.RFC3339)
			}
			t.note("%s", about)
			if p.Error != "" {
				return failed("the document at the source is not valid: %s", p.Error)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&source, "source", false, "the document at the source, valid or not")
	return cmd
}

// saved is what became of a document that was put in force.
type saved struct {
	Revision    string `json:"revision"`
	ContentHash string `json:"content_hash"`
	Tenants     int    `json:"tenants"`
	Added       int    `json:"added"`
	Removed     int    `json:"removed"`
	Changed     int    `json:"changed"`
	Same        bool   `json:"same"`
}

func (t *tool) printSaved(s saved) error {
	if t.json {
		return t.printJSON(s)
	}
	if s.Same {
		fmt.Fprintf(t.out, "the same as before: revision %s, %s\n", none(s.Revision), plural(s.Tenants, "tenant"))
		return nil
	}
	fmt.Fprintf(t.out, "%s: revision %s, %s: %s\n", paint(t.colorOut, green, "in force"), none(s.Revision), plural(s.Tenants, "tenant"), counted(s.Added, s.Changed, s.Removed))
	return nil
}

func counted(added, changed, removed int) string {
	return fmt.Sprintf("%d added, %d changed, %d removed", added, changed, removed)
}

func none(revision string) string { return cmp.Or(revision, "(none)") }

func (t *tool) policyConfirm() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm REVISION",
		Short: "Put a document in force that is held back because it removes too many tenants",
		Long: `Put a document in force that the master holds back because it removes more tenants than
--tenant_quota_max_removal_percent allows. mooncakectl connector status names its revision.`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var s saved
			if err := t.data(cmd.Context(), http.MethodPost, policyPath+"/confirm?revision="+url.QueryEscape(args[0]), nil, &s); err != nil {
				return t.conflict(err, "it is held no more; mooncakectl connector status says what is")
			}
			return t.printSaved(s)
		},
	}
}

// event is one line of the history.
type event struct {
	Revision    string    `json:"revision"`
	ContentHash string    `json:"content_hash"`
	Time        time.Time `json:"time"`
	Why         string    `json:"why"`
	Tenants     int       `json:"tenants"`
	Added       int       `json:"added"`
	Removed     int       `json:"removed"`
	Changed     int       `json:"changed"`
	What        string    `json:"what"`
}

func (t *tool) policyHistory() *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List what was put in force since the master's start, newest first",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return misused("--limit=%d: want 0 (all) or more", limit)
			}
			events := []event{}
			if err := t.data(cmd.Context(), http.MethodGet, policyPath+"/history", nil, &events); err != nil {
				return err
			}
			if limit > 0 {
				events = events[:min(limit, len(events))]
			}
			if t.json {
				return t.printJSON(events)
			}
			var rows [][]cell
			for _, e := range events {
				rows = append(rows, []cell{
					left(e.Time.Format("2006-01-02 15:04:05Z")), left(short(e.Revision)), number(fmt.Sprint(e.Tenants)),
					number(fmt.Sprintf("+%d", e.Added)), number(fmt.Sprintf("~%d", e.Changed)), number(fmt.Sprintf("-%d", e.Removed)),
					left(e.Why), left(e.What),
				})
			}
			t.table([]string{"TIME", "REVISION", "TENANTS", "ADDED", "CHANGED", "REMOVED", "WHY", "WHAT"}, rows)
			return nil
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "show the newest only; 0 shows all")
	return cmd
}

// short cuts what is too long for a column; JSON has it whole.
func short(s string) string {
	const most = 20
	if s == "" {
		return "-"
	}
	if len(s) > most && policydoc.Printable(s) {
		return s[:most-3] + "..."
	}
	return s
}

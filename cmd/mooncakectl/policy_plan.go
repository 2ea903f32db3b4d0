package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// plan is what a document would change, as the master says it.
type plan struct {
	Base struct {
		Revision    string `json:"revision"`
		ContentHash string `json:"content_hash"`
	} `json:"base"`
	Document struct {
		ContentHash string   `json:"content_hash"`
		Tenants     int      `json:"tenants"`
		Warnings    []remark `json:"warnings"`
	} `json:"document"`
	Same      bool          `json:"same"`
	Added     int           `json:"added"`
	Removed   int           `json:"removed"`
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	Tenants   []tenantPlan  `json:"tenants"`
	NotEmpty  []string      `json:"removed_not_empty"`
	Pool      poolPlan      `json:"pool"`
	Guard     *removalGuard `json:"guard,omitempty"`
}

type tenantPlan struct {
	TenantID        string `json:"tenant_id"`
	Change          string `json:"change"`
	RequestedBefore uint64 `json:"requested_before"`
	RequestedAfter  uint64 `json:"requested_after"`
	EffectiveBefore uint64 `json:"effective_before"`
	EffectiveAfter  uint64 `json:"effective_after"`
	ChargedBytes    uint64 `json:"charged_bytes"`
	Objects         uint64 `json:"objects"`
	OverBefore      bool   `json:"over_quota_before"`
	OverAfter       bool   `json:"over_quota_after"`
	OverBy          uint64 `json:"over_by_bytes"`
}

type poolPlan struct {
	CapacityBytes   uint64   `json:"capacity_bytes"`
	RequestedBefore uint64   `json:"requested_before"`
	RequestedAfter  uint64   `json:"requested_after"`
	Before          *float64 `json:"oversubscription_before"`
	After           *float64 `json:"oversubscription_after"`
}

type removalGuard struct {
	RemovedPercent    float64 `json:"removed_percent"`
	MaxRemovalPercent float64 `json:"max_removal_percent"`
	Held              bool    `json:"held"`
}

func (t *tool) policyPlan() *cobra.Command {
	all, exact := false, false
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show what a document would change at the running master; changes nothing",
		Long: `Show what a document would change at the running master, worked out by the master with the code
that would apply it; nothing is changed. For each tenant: what it requests and what it would
really have, before and after, and who would be over quota by how much. "-" is standard input.`,
		Example: "  mooncakectl policy plan tenants.yaml --master host:9003",
		Args:    takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := t.document(args[0])
			if err != nil {
				return err
			}
			p, err := t.plan(cmd.Context(), doc, all)
			if err != nil {
				return err
			}
			if t.json {
				return t.printJSON(p)
			}
			t.printPlan(doc, p, exact)
			if !p.Same {
				fmt.Fprintf(t.out, "\nto put it in force: mooncakectl policy apply %s --expected-revision %s\n", quoted(doc.File), quoted(p.Base.Revision))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list the tenants too for which nothing changes")
	cmd.Flags().BoolVar(&exact, "bytes", false, "show sizes in bytes")
	return cmd
}

// quoted writes a word for a shell.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// plan asks the master.
func (t *tool) plan(ctx context.Context, doc *verdict, all bool) (*plan, error) {
	path := policyPath + "/plan"
	if all {
		path += "?all=true"
	}
	p := &plan{Tenants: []tenantPlan{}, NotEmpty: []string{}}
	if err := t.data(ctx, http.MethodPost, path, doc.text, p); err != nil {
		return nil, aboutDocument(doc.File, err)
	}
	return p, nil
}

// aboutDocument says which document a refusal is about.
func aboutDocument(file string, err error) error {
	var no *refusal
	if !errors.As(err, &no) || no.status != http.StatusBadRequest {
		return err
	}
	f := no.failure()
	f.text = file + ": " + f.text
	return f
}

func (t *tool) printPlan(doc *verdict, p *plan, exact bool) {
	show := size
	if exact {
		show = func(n uint64) string { return fmt.Sprint(n) }
	}
	fmt.Fprintf(t.out, "%s against revision %s\n", doc.File, none(p.Base.Revision))
	for _, w := range p.Document.Warnings {
		t.printRemark(doc, w, "warning", yellow)
	}
	if p.Same {
		fmt.Fprintf(t.out, "this document is in force already: %s\n", plural(p.Document.Tenants, "tenant"))
		if len(p.Tenants) == 0 {
			return
		}
	}
	if len(p.Tenants) > 0 {
		fmt.Fprintln(t.out)
		var rows [][]cell
		for _, tp := range p.Tenants {
			rows = append(rows, tp.row(show))
		}
		t.table([]string{"", "TENANT", "REQUESTED", "EFFECTIVE", "CHARGED", "OBJECTS", "NOTES"}, rows)
		fmt.Fprintln(t.out)
	}
	fmt.Fprintf(t.out, "%s, %d unchanged\n", counted(p.Added, p.Changed, p.Removed), p.Unchanged)
	t.printPool(&p.Pool, show)
	if p.Guard != nil && p.Guard.Held {
		fmt.Fprintf(t.out, "%s it removes %.4g%% of the tenants, --tenant_quota_max_removal_percent of the master is %.4g; apply needs --confirm-removal\n",
			paint(t.colorOut, yellow, "held back:"), p.Guard.RemovedPercent, p.Guard.MaxRemovalPercent)
	}
}

// row is one tenant's line of a plan.
func (tp *tenantPlan) row(show func(uint64) string) []cell {
	value := func(n uint64, there bool) string {
		if !there {
			return "none"
		}
		return show(n)
	}
	was, is := tp.Change != "added", tp.Change != "removed"
	change := func(before, after uint64) string {
		if a, b := value(before, was), value(after, is); a != b {
			return a + " -> " + b
		}
		return value(after, is)
	}
	sign, color := " ", plain
	switch tp.Change {
	case "added":
		sign, color = "+", green
	case "changed":
		sign, color = "~", yellow
	case "removed":
		sign, color = "-", red
	}
	var notes []string
	warn := plain
	if !is && tp.Objects > 0 {
		notes, warn = append(notes, "owns objects: they stay readable, nothing can be added"), yellow
	}
	if is && tp.OverAfter {
		verb := "becomes over quota by "
		if tp.OverBefore {
			verb = "stays over quota by "
		}
		notes, warn = append(notes, verb+show(tp.OverBy)), red
	}
	if is && tp.OverBefore && !tp.OverAfter {
		notes, warn = append(notes, "is over quota no more"), green
	}
	return []cell{
		left(sign).in(color), left(tp.TenantID).in(color), left(change(tp.RequestedBefore, tp.RequestedAfter)),
		left(change(tp.EffectiveBefore, tp.EffectiveAfter)), number(show(tp.ChargedBytes)), number(fmt.Sprint(tp.Objects)),
		left(strings.Join(notes, ", ")).in(warn),
	}
}

// printPool says how much of the pool is promised.
func (t *tool) printPool(p *poolPlan, show func(uint64) string) {
	share := func(f *float64) string {
		if f == nil {
			return "no memory"
		}
		return fmt.Sprintf("%.0f%%", 100**f)
	}
	fmt.Fprintf(t.out, "pool of %s, requested %s (%s) -> %s (%s)\n", show(p.CapacityBytes),
		show(p.RequestedBefore), share(p.Before), show(p.RequestedAfter), share(p.After))
	switch {
	case p.After == nil:
		fmt.Fprintln(t.out, "no memory is mounted: every effective quota is 0")
	case *p.After > 1:
		fmt.Fprintf(t.out, "%s each tenant gets %.0f%% of what it requests\n", paint(t.colorOut, yellow, "oversubscribed:"), 100 / *p.After)
	}
}

func (t *tool) policyApply() *cobra.Command {
	var expected string
	yes, removal, exact := false, false, false
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Put a document in force: at the source first, and only if that has not changed meanwhile",
		Long: `Show the plan, ask (at a terminal), and replace the document at the source if it still is the one that
the plan was made against; then it is in force. If somebody else was faster nothing is changed,
and the status is 3. --expected-revision names the revision of an earlier plan; '' creates the
document where there is none.`,
		Example: `  mooncakectl policy apply tenants.yaml
  mooncakectl policy apply tenants.yaml --yes --expected-revision "$(mooncakectl policy plan tenants.yaml -o json | jq -r .base.revision)"`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			doc, err := t.document(args[0])
			if err != nil {
				return err
			}
			p, err := t.plan(ctx, doc, false)
			if err != nil {
				return err
			}
			given := cmd.Flags().Changed("expected-revision")
			if !given {
				expected = p.Base.Revision
			} else if expected != p.Base.Revision && !t.json {
				t.note("in force is revision %s, expected is %s", none(p.Base.Revision), none(expected))
			}
			if !t.json {
				t.printPlan(doc, p, exact)
			}
			there := p.Same
			if p.Same && !given {
				// The source may have lost it, or hold something else: then there is something to do.
				if there, err = t.atSource(ctx, p.Base.ContentHash, &expected); err != nil {
					return err
				}
			}
			if there && !given {
				if t.json {
					return t.printJSON(saved{Revision: p.Base.Revision, ContentHash: p.Base.ContentHash, Tenants: p.Document.Tenants, Same: true})
				}
				return nil
			}
			if p.Guard != nil && p.Guard.Held && !removal {
				f := failed("%s removes %.4g%% of the tenants, more than the %.4g%% of --tenant_quota_max_removal_percent", doc.File, p.Guard.RemovedPercent, p.Guard.MaxRemovalPercent)
				f.code = exitHeld
				return f.hinting("--confirm-removal applies it all the same")
			}
			if !yes {
				if err := t.confirm(ctx, "Apply?"); err != nil {
					return err
				}
			}
			return t.apply(ctx, doc, expected, removal)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&expected, "expected-revision", "", "replace this revision only (default: the one the plan is made against)")
	flags.BoolVarP(&yes, "yes", "y", false, "don't ask")
	flags.BoolVar(&removal, "confirm-removal", false, "also if it removes more tenants than --tenant_quota_max_removal_percent")
	flags.BoolVar(&exact, "bytes", false, "show sizes in bytes")
	return cmd
}

// atSource reports whether the source holds the document of that hash. Where it holds none,
// expected becomes the revision to create it with.
func (t *tool) atSource(ctx context.Context, hash string, expected *string) (bool, error) {
	var is policyInForce
	err := t.data(ctx, http.MethodGet, policyPath+"?at=source", nil, &is)
	var no *refusal
	switch {
	case err == nil:
		return is.ContentHash == hash, nil
	case errors.As(err, &no) && no.Reason == "absent":
		*expected = ""
		t.note("the source holds no document any more: it is created again")
		return false, nil
	}
	return false, err
}

func (t *tool) apply(ctx context.Context, doc *verdict, expected string, removal bool) error {
	path := policyPath + "?expected_revision=" + url.QueryEscape(expected)
	if removal {
		path += "&confirm_removal=true"
	}
	t.progress("saving...")
	var s saved
	err := t.data(ctx, http.MethodPut, path, doc.text, &s)
	t.progress("")
	if err != nil {
		hint := "look at it with mooncakectl policy show --source, bring your change into it, and plan again"
		if no := (*refusal)(nil); errors.As(err, &no) && no.Current == "" {
			hint = "--expected-revision '' creates it"
		}
		return aboutDocument(doc.File, t.conflict(err, hint))
	}
	return t.printSaved(s)
}

// conflict explains a lost race; other errors stay.
func (t *tool) conflict(err error, hint string) error {
	var no *refusal
	if !errors.As(err, &no) || no.Reason != "conflict" {
		return err
	}
	f := no.failure()
	f.text += ": nothing was changed; the source holds revision " + none(no.Current)
	return f.hinting("%s", hint)
}

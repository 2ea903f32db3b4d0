package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

const quotasPath = "/api/v1/tenant_quotas"

func quotaPath(name string) string { return quotasPath + "?tenant_id=" + url.QueryEscape(name) }

func (t *tool) tenantCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "tenant", Aliases: []string{"tenants"}, Short: "List tenants; get, set and delete one tenant's quota"}
	group(cmd)
	exact := false
	list := &cobra.Command{
		Use:   "list",
		Short: "List all tenants: what they asked for, what they have, what they use",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			tenants := []tenant.Snapshot{}
			if err := t.data(cmd.Context(), http.MethodGet, quotasPath, nil, &tenants); err != nil {
				return err
			}
			if t.json {
				return t.printJSON(tenants)
			}
			t.tenants(tenants, exact)
			return nil
		},
	}
	get := &cobra.Command{
		Use:   "get TENANT",
		Short: "Show one tenant",
		Args:  takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.oneTenant(cmd, http.MethodGet, args[0], nil, exact)
		},
	}
	set := &cobra.Command{
		Use:   "set TENANT QUOTA",
		Short: "Give a tenant a quota, like 64GB, at the source and in force",
		Long: `Give a tenant a quota, at the source and in force. The quota is written as in a policy: bytes,
or a whole number with B, KB, MB, GB or TB (powers of 1024). The rest of the document stays as
it is; who changes it at the same moment is not overwritten.`,
		Example: "  mooncakectl tenant set team-a 64GB",
		Args:    takes(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			quota, err := policydoc.ParseQuota(args[1])
			if err != nil {
				return misused("quota of tenant %q: %s: %v", args[0], args[1], err).hinting("want bytes, or a whole number directly followed by B, KB, MB, GB or TB (powers of 1024)")
			}
			if err := checkName(args[0]); err != nil {
				return err
			}
			return t.oneTenant(cmd, http.MethodPut, args[0], fmt.Appendf(nil, `{"requested_quota_bytes":%d}`, quota), exact)
		},
	}
	for _, c := range []*cobra.Command{list, get, set} {
		c.Flags().BoolVar(&exact, "bytes", false, "show sizes in bytes")
	}
	cmd.AddCommand(list, get, set, t.tenantDelete())
	return cmd
}

func (t *tool) tenantDelete() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "delete TENANT",
		Short: "Take a tenant out of the policy; it must own nothing",
		Args:  takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkName(args[0]); err != nil {
				return err
			}
			if !yes {
				if err := t.confirm(cmd.Context(), fmt.Sprintf("Delete tenant %s?", args[0])); err != nil {
					return err
				}
			}
			if err := t.data(cmd.Context(), http.MethodDelete, quotaPath(args[0]), nil, new(any)); err != nil {
				return aboutTenant(args[0], err)
			}
			if t.json {
				return t.printJSON(map[string]any{"tenant_id": args[0], "deleted": true})
			}
			fmt.Fprintf(t.out, "tenant %s is deleted\n", printable(args[0]))
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	return cmd
}

func checkName(name string) error {
	if !policydoc.ValidName(name) || !policydoc.Printable(name) {
		return misused("invalid tenant name %q", name).hinting("a name is not empty, does not begin with '_', is UTF-8 and has no control characters")
	}
	return nil
}

func (t *tool) oneTenant(cmd *cobra.Command, method, name string, body []byte, exact bool) error {
	if name == "" {
		return checkName(name)
	}
	var one tenant.Snapshot
	if err := t.data(cmd.Context(), method, quotaPath(name), body, &one); err != nil {
		return aboutTenant(name, err)
	}
	if t.json {
		return t.printJSON(one)
	}
	t.tenants([]tenant.Snapshot{one}, exact)
	return nil
}

// aboutTenant says which tenant a refusal is about.
func aboutTenant(name string, err error) error {
	var no *refusal
	if !errors.As(err, &no) {
		return err
	}
	f := no.failure()
	switch no.Code {
	case errcode.ObjectNotFound:
		f.text = fmt.Sprintf("there is no tenant %q", name)
		return f.hinting("mooncakectl tenant list shows all; names are compared byte by byte")
	case errcode.TenantNotEmpty:
		f.text = fmt.Sprintf("tenant %q owns objects", name)
		return f.hinting("remove its objects first, or take it out with mooncakectl policy apply: then they stay readable and nothing can be added")
	case errcode.UnavailableInMode:
		return f
	}
	f.text = fmt.Sprintf("tenant %q: %s", name, f.text)
	return f
}

func (t *tool) tenants(tenants []tenant.Snapshot, exact bool) {
	show := size
	if exact {
		show = func(n uint64) string { return fmt.Sprint(n) }
	}
	var rows [][]cell
	for _, s := range tenants {
		var notes []string
		color := plain
		if s.OverQuota {
			notes, color = append(notes, "over quota by "+show(s.ChargedBytes-s.EffectiveQuotaBytes)), red
		}
		if !s.HasExplicitPolicy {
			notes = append(notes, "no policy")
		}
		if s.AdmissionClosed {
			notes, color = append(notes, "closed to writes"), max(color, yellow)
		}
		used := "-"
		if s.EffectiveQuotaBytes > 0 {
			used = fmt.Sprintf("%.0f%%", 100*float64(s.ChargedBytes)/float64(s.EffectiveQuotaBytes))
		}
		rows = append(rows, []cell{
			left(s.TenantID), number(show(s.RequestedQuotaBytes)), number(show(s.EffectiveQuotaBytes)),
			number(show(s.ChargedBytes)), number(used), left(strings.Join(notes, ", ")).in(color),
		})
	}
	t.table([]string{"TENANT", "REQUESTED", "EFFECTIVE", "CHARGED", "USED", "NOTES"}, rows)
}

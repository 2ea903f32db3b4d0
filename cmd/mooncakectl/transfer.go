package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/core/errcode"
)

const transferPath = "/api/v1/transfers"

// transferView is a copy or move under way as the master shows it and this tool prints it.
type transferView struct {
	ID       string   `json:"id"`
	Tenant   string   `json:"tenant_id"`
	Key      string   `json:"key"`
	Type     string   `json:"type"`
	Source   string   `json:"source"`
	Targets  []string `json:"targets"`
	Bytes    uint64   `json:"bytes_total"`
	Done     uint64   `json:"bytes_done"`
	Since    int64    `json:"since_ms_epoch"`
	Executor string   `json:"executor"`
	Client   string   `json:"client_id"`
}

func (t *tool) transferCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "transfers",
		Short: "Copies and moves of objects that are under way",
		Long: `Copies and moves of objects that are under way because a task asks for them: somebody's, a
drain's or the master's own. A client carries them out, or the master itself (--transfer_executor).`,
	}
	group(cmd)
	cmd.AddCommand(t.transferList(), t.transferCancel())
	return cmd
}

func (t *tool) transferList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List them, those that the master carries out first",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := []transferView{}
			if err := t.data(cmd.Context(), http.MethodGet, transferPath, nil, &all); err != nil {
				return err
			}
			if t.json {
				return t.printJSON(all)
			}
			var rows [][]cell
			for _, v := range all {
				done := size(v.Bytes)
				if v.Executor == "master" {
					done = size(v.Done) + "/" + done
				}
				rows = append(rows, []cell{
					left(v.ID), left(printable(v.Tenant)), left(printable(v.Key)), left(strings.ToLower(v.Type)),
					left(printable(v.Source)), left(printable(strings.Join(v.Targets, " "))), number(done),
					left(time.UnixMilli(v.Since).UTC().Format(time.DateTime)), left(v.Executor),
				})
			}
			t.table([]string{"ID", "TENANT", "KEY", "TYPE", "FROM", "TO", "BYTES", "SINCE", "BY"}, rows)
			return nil
		},
	}
}

func (t *tool) transferCancel() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Give one up: its targets are dropped, the source stays",
		Long: `Give one up: its targets are dropped and the tenant has its quota back, the source stays. What a
client carries out can't be given up from here.`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := t.call(cmd.Context(), http.MethodDelete, transferPath+"/"+url.PathEscape(args[0]), nil, new(any))
			if err != nil {
				return aboutTransfer(args[0], err)
			}
			if t.json {
				return t.printJSON(map[string]string{"id": args[0], "status": "CANCELED"})
			}
			t.note("transfer %s is given up", args[0])
			return nil
		},
	}
}

// aboutTransfer says what a refusal means for a transfer.
func aboutTransfer(id string, err error) error {
	var no *refusal
	if !errors.As(err, &no) {
		return err
	}
	f := no.failure()
	switch no.Code {
	case errcode.TaskNotFound:
		f.text = fmt.Sprintf("there is no transfer %q, or it has ended", id)
		return f.hinting("mooncakectl transfers list shows those under way")
	case errcode.UnavailableInStatus:
		f.text = fmt.Sprintf("transfer %s is carried out by a client", id)
		return f.hinting("it ends by itself, or when its time is up")
	case errcode.InvalidParams:
		return misused("%q is no transfer: want two numbers with a - between them", id)
	}
	return f
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// replica is one copy of a value as it is printed.
type replica struct {
	ID     uint64 `json:"id"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
	Where  string `json:"where"` // an endpoint, or a path
}

// listed is a value as it is printed.
type listed struct {
	Tenant   string    `json:"tenant_id"`
	Key      string    `json:"key"`
	Bytes    uint64    `json:"bytes"`
	Checksum *uint64   `json:"checksum,omitempty"`
	Replicas []replica `json:"replicas"`
}

func (v *values) listed(key string, s *client.Stat) listed {
	l := listed{Tenant: v.tenant, Key: key, Bytes: s.Size, Checksum: s.Checksum, Replicas: []replica{}}
	for i := range s.Replicas {
		r := &s.Replicas[i]
		kind, where := location(&r.Location)
		l.Replicas = append(l.Replicas, replica{r.ID, kind, replicaStatus(r.Status), where})
	}
	return l
}

// location is what a replica lies in and where that is.
func location(l *object.Location) (kind, where string) {
	switch l.Index {
	case object.LocationMemory:
		return "memory", l.Memory.Buffer.Endpoint
	case object.LocationNoF:
		return "nof", l.NoF.Buffer.Endpoint
	case object.LocationDisk:
		return "file", l.Disk.FilePath
	case object.LocationLocalDisk:
		return "disk", l.LocalDisk.Endpoint
	case object.LocationDFS:
		return "dfs", l.DFS.FilePath
	}
	return fmt.Sprint("kind ", l.Index), ""
}

func replicaStatus(s object.ReplicaStatus) string {
	switch s {
	case object.ReplicaComplete:
		return "complete"
	case object.ReplicaProcessing, object.ReplicaInitialized:
		return "being written"
	}
	return fmt.Sprint("status ", int(s))
}

func (v *values) stat() *cobra.Command {
	return &cobra.Command{
		Use:   "stat KEY",
		Short: "Say how large the value of a key is and where it lies",
		Long: `Say how large the value of a key is and where it lies. As with get, it is protected from eviction
and removal for a moment afterwards.`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, err := v.dial(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			s, err := c.Stat(ctx, args[0])
			if err != nil {
				return v.about(ctx, args[0], err)
			}
			l := v.listed(args[0], &s)
			if v.t.json {
				return v.t.printJSON(l)
			}
			fmt.Fprintf(v.t.out, "%s of tenant %s: %s (%d bytes)\n", printable(l.Key), printable(v.tenant), size(l.Bytes), l.Bytes)
			var rows [][]cell
			for _, r := range l.Replicas {
				rows = append(rows, []cell{number(fmt.Sprint(r.ID)), left(r.Kind), left(r.Status), left(r.Where)})
			}
			v.t.table([]string{"REPLICA", "KIND", "STATUS", "WHERE"}, rows)
			return nil
		},
	}
}

func (v *values) list() *cobra.Command {
	return &cobra.Command{
		Use:   "ls [REGEX]",
		Short: "List the keys in which a regular expression is found, or all",
		Long: `List the keys in which a regular expression of ECMAScript is found, or all, with the sizes of their
values and where those lie.`,
		Example: "  mooncakectl ls '^page-[0-9]+$' --tenant tenant-a",
		Args:    takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			regex := ".*"
			if len(args) == 1 {
				regex = args[0]
			}
			found, err := v.find(cmd.Context(), regex)
			if err != nil {
				return err
			}
			all := []listed{}
			for _, key := range slices.Sorted(maps.Keys(found)) {
				s := found[key]
				all = append(all, v.listed(key, &s))
			}
			if v.t.json {
				return v.t.printJSON(all)
			}
			var rows [][]cell
			for _, l := range all {
				var where []string
				for _, r := range l.Replicas {
					where = append(where, r.Where)
				}
				rows = append(rows, []cell{left(l.Key), number(size(l.Bytes)), left(strings.Join(where, ", "))})
			}
			v.t.table([]string{"KEY", "SIZE", "WHERE"}, rows)
			return nil
		},
	}
}

func (v *values) find(ctx context.Context, regex string) (map[string]client.Stat, error) {
	c, err := v.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	found, err := c.List(ctx, regex)
	if err != nil && ctx.Err() == nil && errors.Is(err, errcode.InvalidParams) {
		return nil, misused("%q is no regular expression, or tenant %q no tenant's name", regex, v.tenant)
	}
	return found, v.about(ctx, regex, err)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// defaultRPCPort is where a master's clients go by default.
const defaultRPCPort = "50051"

// values are the commands about values: put, get, stat, ls and rm. They are a client of the pool, beside the admin
// interface.
type values struct {
	t                      *tool
	rpc, metadata, cluster string
	tenant                 string
}

// valueCommands are put, get, stat, ls and rm.
func (t *tool) valueCommands() []*cobra.Command {
	v := &values{t: t}
	all := []*cobra.Command{v.put(), v.get(), v.stat(), v.list(), v.remove()}
	for _, cmd := range all {
		f := cmd.Flags()
		f.StringVarP(&v.tenant, "tenant", "t", "", "whose values (default $MOONCAKE_TENANT_ID or default)")
		f.StringVar(&v.rpc, "rpc", "", "address HOST:PORT of the master's RPC, several with commas between them (default: the host of --master with port "+defaultRPCPort+")")
		f.StringVar(&v.metadata, "metadata", "", "where the owners of memory publish how they are reached: P2PHANDSHAKE, http://HOST:PORT/metadata or etcd://HOST:PORT (default $MOONCAKE_TE_META_DATA_SERVER or P2PHANDSHAKE)")
		f.StringVar(&v.cluster, "metadata-cluster", "", "sets the names of one cluster apart there (default $MC_METADATA_CLUSTER_ID)")
	}
	return all
}

// dial connects to the pool.
func (v *values) dial(ctx context.Context) (*client.Client, error) {
	t := v.t
	for _, x := range []struct {
		to              *string
		name, otherwise string
	}{
		{&v.tenant, "MOONCAKE_TENANT_ID", "default"},
		{&v.metadata, "MOONCAKE_TE_META_DATA_SERVER", segment.P2P},
		{&v.cluster, "MC_METADATA_CLUSTER_ID", ""},
	} {
		if *x.to == "" {
			*x.to = t.env(x.name)
		}
		if *x.to == "" {
			*x.to = x.otherwise
		}
	}
	addresses, from, err := v.addresses()
	if err != nil {
		return nil, err
	}
	c, err := client.Dial(ctx, client.Config{Master: addresses, Metadata: v.metadata, Cluster: v.cluster, Tenant: v.tenant, CallTimeout: t.timeout})
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case strings.HasPrefix(err.Error(), "metadata address"):
		return nil, misused("%v", err).hinting("the address comes from --metadata or $MOONCAKE_TE_META_DATA_SERVER")
	case errors.Is(err, client.ErrVersion):
		return nil, failed("%v", err)
	}
	return nil, noMaster(err, from)
}

// addresses are those of the masters' RPC, and where they were given.
func (v *values) addresses() (list, from string, err error) {
	if v.rpc != "" {
		for address := range strings.SplitSeq(v.rpc, ",") {
			if host, port, err := net.SplitHostPort(strings.TrimSpace(address)); err != nil || host == "" || port == "" {
				return "", "", misused("--rpc=%s: want HOST:PORT of a master's RPC, like 127.0.0.1:%s (an IPv6 address in brackets)", address, defaultRPCPort)
			}
		}
		return v.rpc, "--rpc", nil
	}
	admin, err := v.t.reach()
	if err != nil {
		return "", "", err
	}
	var all []string
	for _, url := range admin.urls {
		_, rest, _ := strings.Cut(url, "://")
		host, _, err := net.SplitHostPort(rest)
		if err != nil {
			return "", "", err
		}
		all = append(all, net.JoinHostPort(host, defaultRPCPort))
	}
	return strings.Join(all, ","), "the host of " + admin.from + ", --rpc names another one", nil
}

// noMaster is the failure to reach one.
func noMaster(err error, from string) error {
	f := &failure{code: exitUnreachable, text: fmt.Sprintf("no active master: %v", err)}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return f.hinting("is the master running? The address is that of its RPC (--rpc_port, not --metrics_port) and comes from %s", from)
	}
	return f.hinting("the address comes from %s", from)
}

// about says what an error of the pool means for the one who asked, with the key and the tenant it is about.
func (v *values) about(ctx context.Context, key string, err error) error {
	var own *failure
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case errors.As(err, &own): // of where the value went
		return own
	}
	whose := fmt.Sprintf("%q of tenant %q", key, v.tenant)
	is := func(code errcode.Code) bool { return errors.Is(err, code) }
	switch {
	case is(errcode.ObjectNotFound):
		return failed("there is no value %s", whose).hinting("mooncakectl ls --tenant %s lists those there are", v.tenant)
	case is(errcode.ObjectAlreadyExists):
		return failed("there is a value %s already", whose).hinting("--replace puts this one in its place")
	case is(errcode.ReplicaIsNotReady):
		return failed("the value %s is being written", whose)
	case is(errcode.ObjectHasLease):
		return failed("the value %s was read a moment ago and is protected", whose).hinting("--force removes it all the same; readers that are at it may fail")
	case is(errcode.TenantNotRegistered):
		return failed("tenant %q is not registered", v.tenant).hinting("mooncakectl tenant list shows those that are; --tenant names one")
	case is(errcode.TenantQuotaExceeded):
		return failed("the value %s does not fit into the tenant's quota", whose).hinting("mooncakectl tenant get %s shows quota and use", v.tenant)
	case is(errcode.NoAvailableHandle):
		return failed("there is no room for the value %s: no segment has that much free memory", whose).hinting("clients and storage nodes lend memory; the master's /get_all_segments lists what is lent")
	case errors.Is(err, client.ErrNotInMemory):
		return failed("the value %s has no replica that this tool can read: it lies on a disk or device of another client", whose)
	case is(errcode.TransferFail):
		return failed("value %s: %v", whose, err).hinting("owners of memory are looked up by --metadata=%s, which must be what they use themselves; one that has ended goes from the pool in a while", v.metadata)
	case is(errcode.RPCFail), is(errcode.RPCTimeout):
		return (&failure{code: exitUnreachable, text: fmt.Sprintf("value %s: %v", whose, err)}).hinting("look before trying again: mooncakectl stat %s", key)
	}
	return failed("value %s: %v", whose, err)
}

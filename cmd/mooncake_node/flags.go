package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_master/app"
	"github.com/mooncake-go/mooncake-master/cmd/mooncake_node/node"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// mostSegments is how many segments the memory may be cut into; each is mounted by a call of its own.
const mostSegments = 1024

// options are the flags.
type options struct {
	master, admin     string
	metadata, cluster string
	name, bind        string

	size, maxSegment size
	protocol         string
	devices, sysfs   string
	adapter          *rdma.Options // nil for TCP
	pages            segment.Pages
	dataVersion      int

	metricsHost string
	metricsPort uint

	tasks        uint
	transferMem  size
	drainTimeout time.Duration
	nameTimeout  time.Duration

	verbosity     int
	help, version bool
}

// size is a flag's number of bytes, written as the released clients and policies do: 4GB, "4 GB", 1048576.
type size uint64

// String writes bytes with the largest unit that they are a whole number of.
func (s *size) String() string {
	for _, u := range []struct {
		name string
		of   size
	}{{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}} {
		if *s >= u.of && *s%u.of == 0 {
			return fmt.Sprint(uint64(*s/u.of), u.name)
		}
	}
	return strconv.FormatUint(uint64(*s), 10)
}

// Set reads what String writes, with or without blanks.
func (s *size) Set(text string) error {
	n, err := policydoc.ParseQuota(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		return errors.New("want bytes, or a whole number with B, KB, MB, GB or TB (powers of 1024), like 4GB")
	}
	*s = size(n)
	return nil
}

// flags defines all flags. Names are those of the released mooncake_client where it has them.
func (o *options) flags(env func(string) string) *flag.FlagSet {
	f := flag.NewFlagSet("mooncake_node", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.master, "master_server_address", "127.0.0.1:50051", "`HOST:PORT` of the master's RPC")
	f.StringVar(&o.master, "master", "127.0.0.1:50051", "the same, shorter")
	f.StringVar(&o.admin, "master_admin_address", "", "`HOST:PORT` of the master's admin interface, which drains need; the default is the master's host with port 9003")
	f.StringVar(&o.metadata, "metadata_server", segment.P2P, "where clients learn how this node is reached: P2PHANDSHAKE, http://HOST:PORT/metadata or etcd://HOST:PORT[,HOST:PORT]; the same as theirs")
	f.StringVar(&o.cluster, "metadata_cluster_id", env("MC_METADATA_CLUSTER_ID"), "sets the names of one cluster apart in the metadata store; the default is $MC_METADATA_CLUSTER_ID, as with clients")
	f.StringVar(&o.name, "local_hostname", "", "`HOST:PORT` that the node is called; clients reach it at HOST. The default is the first address of this machine, with port 50052, or with P2PHANDSHAKE the port that was free")
	f.StringVar(&o.bind, "bind_address", "", "address to listen on; the default is all")
	o.size, o.maxSegment, o.transferMem = 4<<30, node.DefaultMaxSegment, node.DefaultTransferMem
	f.Var(&o.size, "global_segment_size", "memory to lend, like 4GB")
	f.Var(&o.maxSegment, "max_segment_size", "more memory than this is lent as several segments of one name")
	f.StringVar(&o.protocol, "protocol", segment.ProtocolTCP, "tcp, or rdma in a program built with -tags rdma")
	f.StringVar(&o.devices, "device_names", "", "network adapters for RDMA, with commas between them; the default is all")
	f.StringVar(&o.sysfs, "rdma_sysfs", "", "`FOLDER` where the kernel shows the adapters; the default is /sys")
	f.Func("huge_pages", "map the memory in pages of this `SIZE` that the system has set aside, 2MB or 1GB; in usual ones as far as there are too few", func(text string) (err error) {
		o.pages, err = segment.ParsePages(text)
		return err
	})
	f.IntVar(&o.dataVersion, "tcp_proto_version", 2, "version of the TCP data protocol that clients are told to speak, 1 or 2; both are served")
	f.StringVar(&o.metricsHost, "metrics_host", "0.0.0.0", "address of /metrics and /health")
	f.UintVar(&o.metricsPort, "metrics_port", 0, "port of /metrics and /health; 0 = none")
	f.UintVar(&o.tasks, "task_concurrency", node.DefaultTasks, "copies and moves that are carried out at a time")
	f.Var(&o.transferMem, "max_transfer_mem", "most memory for copies and moves")
	f.DurationVar(&o.drainTimeout, "drain_timeout", 10*time.Minute, "how long moving everything to other nodes may take after SIGTERM; 0 = leave without")
	f.DurationVar(&o.nameTimeout, "name_timeout", time.Minute, "how long to wait for a name that the master still knows from a node that has ended without a word")
	f.IntVar(&o.verbosity, "v", 0, "1 logs debug messages too")
	f.BoolVar(&o.version, "version", false, "say which version this is")
	return f
}

// parse reads the command line; env is where defaults may come from.
func parse(args []string, env func(string) string) (*options, error) {
	o := new(options)
	f := o.flags(env)
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		o.help = true
		return o, nil
	case err != nil:
		if strings.HasSuffix(err.Error(), "parse error") { // of a time: the library doesn't say how one is written
			err = fmt.Errorf("%w: a time is written 30s, 10m or 1h30m", err)
		}
		return nil, fmt.Errorf("%w; --help lists the flags", err)
	case f.NArg() > 0:
		return nil, fmt.Errorf("the argument %q means nothing; a setting is written --name=value", f.Arg(0))
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	return o, o.openRDMA(env)
}

// openRDMA makes of the flags and of what the released clients read from their environment what adapters need.
func (o *options) openRDMA(env func(string) string) error {
	if o.protocol != segment.ProtocolRDMA {
		return nil
	}
	o.adapter = &rdma.Options{Sysfs: o.sysfs, Now: time.Now}
	for d := range strings.SplitSeq(o.devices, ",") {
		if d = strings.TrimSpace(d); d != "" {
			o.adapter.Devices = append(o.adapter.Devices, d)
		}
	}
	return o.adapter.Environment(env)
}

// check finds values that make no sense.
func (o *options) check() error {
	switch {
	case o.version:
	case o.protocol != segment.ProtocolTCP && o.protocol != segment.ProtocolRDMA:
		return fmt.Errorf("--protocol=%s: want tcp or rdma", o.protocol)
	case o.devices != "" && o.protocol != segment.ProtocolRDMA:
		return fmt.Errorf("--device_names=%s: adapters are for --protocol=rdma, this is %s", o.devices, o.protocol)
	case o.dataVersion != 1 && o.dataVersion != 2:
		return fmt.Errorf("--tcp_proto_version=%d: want 1 or 2", o.dataVersion)
	case o.metricsPort > 65535:
		return fmt.Errorf("--metrics_port=%d: want a port, or 0 for none", o.metricsPort)
	case o.tasks == 0 || o.tasks > 1024:
		return fmt.Errorf("--task_concurrency=%d: want 1 to 1024", o.tasks)
	case uint64(o.transferMem) < uint64(node.LeastTransferMem(int(o.tasks))) || o.transferMem > 1<<40:
		least := size(node.LeastTransferMem(int(o.tasks)))
		return fmt.Errorf("--max_transfer_mem=%s: want at least %s for --task_concurrency=%d", &o.transferMem, &least, o.tasks)
	case (o.size-1)/o.maxSegment >= mostSegments:
		return fmt.Errorf("--max_segment_size=%s: --global_segment_size=%s would be more than %d segments; want larger ones", &o.maxSegment, &o.size, mostSegments)
	case o.drainTimeout < 0:
		return fmt.Errorf("--drain_timeout=%s: want 0 or more, like 10m", o.drainTimeout)
	case o.nameTimeout < 0:
		return fmt.Errorf("--name_timeout=%s: want 0 or more, like 1m", o.nameTimeout)
	}
	return nil
}

// config is what the flags mean to a node that logs to w.
func (o *options) config(w io.Writer) node.Config {
	level := hclog.Info
	if o.verbosity > 0 {
		level = hclog.Debug
	}
	c := node.Config{
		Version: app.Version,
		Master:  o.master, Admin: o.admin, Metadata: o.metadata, Cluster: o.cluster, Name: o.name, Bind: o.bind,
		SegmentBytes: uint64(o.size), MaxSegment: uint64(o.maxSegment), Pages: o.pages, DataVersion: o.dataVersion,
		Tasks: int(o.tasks), TransferMem: uint64(o.transferMem), DrainTimeout: o.drainTimeout, NameTimeout: o.nameTimeout,
		Now: time.Now, Log: hclog.New(&hclog.LoggerOptions{Name: "node", Level: level, Output: w}),
	}
	c.RDMA = o.adapter
	if o.metricsPort != 0 {
		c.HTTP = net.JoinHostPort(strings.Trim(o.metricsHost, "[]"), strconv.FormatUint(uint64(o.metricsPort), 10))
	}
	return c
}

// usage is what --help prints.
func usage() string {
	var b strings.Builder
	b.WriteString("mooncake_node lends memory to a Mooncake Store.\n\n")
	new(options).flags(func(string) string { return "" }).VisitAll(func(f *flag.Flag) {
		value, help := flag.UnquoteUsage(f)
		if value != "" {
			value = "=" + strings.ToUpper(value)
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			help += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&b, "  --%s%s\n        %s\n", f.Name, value, help)
	})
	return b.String()
}

func versionText() string {
	return "mooncake_node version " + app.Version + "\nbuilt with " + runtime.Version() + " for " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
}

package app

import (
	"errors"
	"flag"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
)

var update = flag.Bool("update", false, "rewrite docs/flags.md")

// testEnv is a world without environment variables that has the given files and those on
// disk.
func testEnv(files map[string][]byte) Environment {
	return Environment{
		Program:   "mooncake_master",
		Version:   "1.2.3 (test)",
		LookupEnv: func(string) (string, bool) { return "", false },
		ReadFile: func(path string) ([]byte, error) {
			if b, ok := files[path]; ok {
				return b, nil
			}
			return os.ReadFile(path)
		},
		InterfaceIP: func(name string) (string, error) {
			if name == "eth7" {
				return "10.9.8.7", nil
			}
			return "", errors.New("network interface '" + name + "' was not found")
		},
	}
}

func TestDefaultsMatchTable(t *testing.T) {
	seen := map[string]bool{}
	groupSeen := map[Group]bool{}
	for _, g := range groups {
		groupSeen[g] = true
	}
	for _, f := range Flags() {
		if seen[f.Name] {
			t.Errorf("%s is in the table twice", f.Name)
		}
		seen[f.Name] = true
		if !groupSeen[f.Group] {
			t.Errorf("%s is in a group that is not printed", f.Name)
		}
		if _, err := parseValue(f.Kind, f.Default); err != nil {
			t.Errorf("%s: default %q: %v", f.Name, f.Default, err)
		}
		if (f.Effect == Active) != (f.Feature == "") {
			t.Errorf("%s: a reason is given exactly for flags without effect", f.Name)
		}
		if f.Effect == Active && f.bind == nil && f.Group != GroupBuiltin {
			t.Errorf("%s: active, but its value goes nowhere", f.Name)
		}
	}
	c := Default()
	if err := c.Validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
	if c.RPC.Port != 50051 || c.Objects.MaxSoftPinTTL != 604800*time.Second || c.Clients.SuspicionTTL != 20*time.Second ||
		c.Eviction.TenantHighWatermark != 0.9 || c.RPC.MaxFrameBytes != 256<<20 {
		t.Errorf("unexpected defaults: %+v", c)
	}
}

// The flags of both releases, as printed by their --help.
func TestEveryFlagOfTheOriginalIsKnown(t *testing.T) {
	names, err := os.ReadFile(flagData + "/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(names)), "\n") {
		field := strings.Split(line, "\t") // name, type, default of the newest release that has it
		f := byName[field[0]]
		if f == nil {
			t.Errorf("no flag %s", field[0])
			continue
		}
		if f.Kind.String() != field[1] {
			t.Errorf("%s is %s, want %s", f.Name, f.Kind, field[1])
		}
		if want := strings.Trim(field[2], `"`); !sameText(f, want) {
			t.Errorf("%s defaults to %s, want %s", f.Name, f.Default, want)
		}
	}
}

func TestSyntax(t *testing.T) {
	files := map[string][]byte{
		"plain.flags":   []byte("# comment\n\n  --metrics_port=17012\n-rpc_port=17011\n"),
		"bools.flags":   []byte("--enable_offload\n--noenable_metric_reporting\n--rpc_port=5"),
		"program.flags": []byte("mooncake_master x\n--rpc_port=17011\nother\n--rpc_port=17013\n\nx mooncake_master\n--metrics_port=7\n"),
		"unknown.flags": []byte("--bogus=1\n--rpc_port 17011\n"),
		"nested.flags":  []byte("--flagfile=plain.flags\n--metrics_port=8\n"),
	}
	env := map[string]string{"FLAGS_rpc_port": "17033", "FLAGS_enable_ha": "no"}
	tests := []struct {
		args string // separated by blanks, '_' alone stands for an empty argument
		want string // flag=value of what was set, sorted as in the table
	}{
		{"", ""},
		{"--rpc_port=5", "rpc_port=5"},
		{"-rpc_port=5", "rpc_port=5"},
		{"--rpc_port 5", "rpc_port=5"},
		{"-rpc_port 5", "rpc_port=5"},
		{"--rpc_port=5 --rpc_port=6", "rpc_port=6"},
		{"--rpc_port=0x10", "rpc_port=16"},
		{"--rpc_port=010", "rpc_port=10"},
		{"--enable_offload", "enable_offload=true"},
		{"-enable_offload", "enable_offload=true"},
		{"--noenable_metric_reporting", "enable_metric_reporting=false"},
		{"-noenable_metric_reporting", "enable_metric_reporting=false"},
		{"--noenable_offload=1", "enable_offload=false"},
		{"--enable_offload false", "enable_offload=true"},
		{"--enable_offload=T --enable_metric_reporting=n", "enable_metric_reporting=false enable_offload=true"},
		{"--enable_offload=yes", "enable_offload=true"},
		{"--enable_offload=1", "enable_offload=true"},
		{"--enable_offload=y --enable_offload=No", "enable_offload=false"},
		{"positional --rpc_port=5 another -", "rpc_port=5"},
		{"-- --bogus", ""},
		{"--cluster_id --enable_ha", "cluster_id=--enable_ha"},
		{"--cluster_id=a=b", "cluster_id=a=b"},
		{"--cluster_id _ --rpc_port=5", "cluster_id=mooncake_cluster rpc_port=5"},
		{"--eviction_ratio=0x1p-1", "eviction_ratio=0.5"},
		{"--eviction_ratio=.25", "eviction_ratio=0.25"},
		{"--default_kv_lease_ttl=5s", "default_kv_lease_ttl=5s"},
		{"--default_kv_lease_ttl=5H", "default_kv_lease_ttl=5h0m0s"},
		{"--default_kv_lease_ttl=1500", "default_kv_lease_ttl=1.5s"},
		{"--max_kv_soft_pin_ttl=18446744073709551615", "max_kv_soft_pin_ttl=876000h0m0s"},
		{"--undefok=bogus,other --bogus --noother --rpc_port=5", "rpc_port=5 undefok=bogus,other"},
		{"--bogus=7 --undefok=bogus", "undefok=bogus"},
		{"--nobogus --undefok=bogus", "undefok=bogus"},
		{"--flagfile=plain.flags", "rpc_port=17011 metrics_port=17012 flagfile=plain.flags"},
		{"--flagfile=plain.flags --rpc_port=5", "rpc_port=5 metrics_port=17012 flagfile=plain.flags"},
		{"--rpc_port=5 --flagfile=plain.flags", "rpc_port=17011 metrics_port=17012 flagfile=plain.flags"},
		{"--flagfile=bools.flags", "rpc_port=5 enable_metric_reporting=false enable_offload=true flagfile=bools.flags"},
		{"--flagfile=program.flags", "rpc_port=17011 metrics_port=7 flagfile=program.flags"},
		{"--flagfile=unknown.flags", "flagfile=unknown.flags"},
		{"--flagfile=nested.flags", "rpc_port=17011 metrics_port=8 flagfile=plain.flags"},
		{"--fromenv=rpc_port,enable_ha", "rpc_port=17033 enable_ha=false fromenv=rpc_port,enable_ha"},
		{"--tryfromenv=rpc_port,metrics_port", "rpc_port=17033 tryfromenv=rpc_port,metrics_port"},
		{"--log_dir= --v=1 --vmodule=a=2 --logtostderr --minloglevel=0", "log_dir= minloglevel=0 v=1 logtostderr=true vmodule=a=2"},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			e := testEnv(files)
			e.LookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
			var args []string
			for _, a := range strings.Fields(test.args) {
				if a == "_" {
					a = ""
				}
				args = append(args, a)
			}
			out := Load(args, e)
			if out.Config == nil {
				t.Fatalf("refused: %s", out.Stderr)
			}
			var got []string
			for _, line := range out.Config.Given() {
				text, _, _ := strings.Cut(line, " (")
				got = append(got, text)
			}
			if g := strings.Join(got, " "); g != test.want {
				t.Errorf("got  %s\nwant %s", g, test.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	files := map[string][]byte{
		"bad.flags":  []byte("--cluster_id=x\n--rpc_port=x\n"),
		"miss.flags": []byte("\n--rpc_port\n"),
		"loop.flags": []byte("--flagfile=loop.flags\n"),
	}
	env := map[string]string{"FLAGS_metrics_port": "x", "FLAGS_fromenv": "x"}
	tests := []struct {
		args string
		code int
		line string // the first on standard error
	}{
		{"--bogus", 1, "ERROR: unknown command line flag 'bogus'"},
		{"-bogus=1", 1, "ERROR: unknown command line flag 'bogus'"},
		{"--nobogus", 1, "ERROR: unknown command line flag 'nobogus'"},
		{"--bogus --a2", 1, "ERROR: unknown command line flag 'a2'"},
		{"---rpc_port=5", 1, "ERROR: unknown command line flag '-rpc_port'"},
		{"--undefok=bogus,b2 --b2=1 --bogus3=1", 1, "ERROR: unknown command line flag 'bogus3'"},
		{"--rpc_port=abc", 1, "ERROR: illegal value 'abc' specified for int32 flag 'rpc_port'"},
		{"--rpc_port=", 1, "ERROR: illegal value '' specified for int32 flag 'rpc_port'"},
		{"--rpc_port=12_0", 1, "ERROR: illegal value '12_0' specified for int32 flag 'rpc_port'"},
		{"--rpc_port=99999999999", 1, "ERROR: illegal value '99999999999' specified for int32 flag 'rpc_port'"},
		{"--rpc_port=x --rpc_port=5", 1, "ERROR: illegal value 'x' specified for int32 flag 'rpc_port'"},
		{"--enable_ha=maybe", 1, "ERROR: illegal value 'maybe' specified for bool flag 'enable_ha'"},
		{"--norpc_port", 1, "ERROR: boolean value (norpc_port) specified for int32 command line flag"},
		{"--eviction_ratio=x", 1, "ERROR: illegal value 'x' specified for double flag 'eviction_ratio'"},
		{"--offloading_queue_limit=-1", 1, "ERROR: illegal value '-1' specified for uint64 flag 'offloading_queue_limit'"},
		{"--default_kv_lease_ttl=abc", 1, "ERROR: failed validation of new value 'abc' for flag 'default_kv_lease_ttl': want a whole number with an optional unit ms, s, m or h, like 10000 or 10s"},
		{"--default_kv_lease_ttl=-5", 1, "ERROR: failed validation of new value '-5' for flag 'default_kv_lease_ttl': want a whole number with an optional unit ms, s, m or h, like 10000 or 10s"},
		{"--default_kv_lease_ttl=5d", 1, "ERROR: failed validation of new value '5d' for flag 'default_kv_lease_ttl': unknown unit \"d\", want ms, s, m or h"},
		{"--default_kv_lease_ttl=99999999999999999h", 1, "ERROR: failed validation of new value '99999999999999999h' for flag 'default_kv_lease_ttl': the number is too large"},
		{"--ha_leader_lease_ttl_sec=1", 1, "ERROR: failed validation of new value '1' for flag 'ha_leader_lease_ttl_sec': want 2 to 60"},
		{"--cluster_id", 1, "ERROR: flag '--cluster_id' is missing its argument; flag description: " + byName["cluster_id"].Help},
		{"--flagfile=/nowhere", 1, "ERROR: /nowhere: No such file or directory (named by --flagfile)"},
		{"--flagfile=bad.flags", 1, "ERROR: illegal value 'x' specified for int32 flag 'rpc_port' (bad.flags, line 2)"},
		{"--flagfile=miss.flags", 1, "ERROR: flag '--rpc_port' is missing its argument (miss.flags, line 2); in a file the form is --rpc_port=VALUE"},
		{"--flagfile=loop.flags", 1, "ERROR: loop.flags: flag files name each other more than 16 deep"},
		{"--fromenv=foo", 1, "ERROR: unknown command line flag 'foo' (via --fromenv or --tryfromenv)"},
		{"--fromenv=rpc_port", 1, "ERROR: FLAGS_rpc_port not found in environment"},
		{"--fromenv=metrics_port", 1, "ERROR: illegal value 'x' specified for int32 flag 'metrics_port' (FLAGS_metrics_port of the environment)"},
		{"--fromenv=fromenv", 1, "ERROR: infinite recursion on environment flag 'fromenv'"},
		{"--config_path=/nowhere.yaml", 1, "ERROR: --config_path=/nowhere.yaml: No such file or directory"},
		{"--config_path=/nowhere.txt", 1, "ERROR: --config_path=/nowhere.txt: unsupported config file format, want .yaml, .yml or .json"},
		{"--rpc_interface=foo9", 1, "ERROR: --rpc_interface=foo9: network interface 'foo9' was not found"},
		{"--rpc_port=70000", 1, "ERROR: --rpc_port=70000: want a port from 0 to 65535"},
		{"--rpc_port=0 --port=-1", 1, "ERROR: --port=-1: want a port from 0 to 65535"},
		{"--metrics_port=-1", 1, "ERROR: --metrics_port=-1: want a port from 0 to 65535"},
		{"--http_metadata_server_port=65536", 1, "ERROR: --http_metadata_server_port=65536: want a port from 0 to 65535"},
		{"--metrics_host=a/b", 1, "ERROR: --metrics_host=a/b: want an IP address or a host name"},
		{"--rpc_address=", 1, "ERROR: --rpc_address=: want an IP address or a host name"},
		{"--rpc_conn_timeout_seconds=-1", 1, "ERROR: --rpc_conn_timeout_seconds=-1: want 0 (no limit) or more seconds"},
		{"--rpc_max_frame_bytes=100", 1, "ERROR: --rpc_max_frame_bytes=100: want 4096 to 4294967295 bytes"},
		{"--eviction_ratio=2", 1, "ERROR: --eviction_ratio=2: must be between 0.0 and 1.0"},
		{"--eviction_ratio=nan", 1, "ERROR: --eviction_ratio=nan: must be between 0.0 and 1.0"},
		{"--eviction_high_watermark_ratio=-0.1", 1, "ERROR: --eviction_high_watermark_ratio=-0.1: must be between 0.0 and 1.0"},
		{"--tenant_eviction_high_watermark_ratio=1.1", 1, "ERROR: --tenant_eviction_high_watermark_ratio=1.1: must be between 0.0 and 1.0"},
		{"--nof_eviction_ratio=inf", 1, "ERROR: --nof_eviction_ratio=inf: must be between 0.0 and 1.0"},
		{"--offload_cap_ratio=2", 1, "ERROR: --offload_cap_ratio=2: must be between 0.0 and 1.0"},
		{"--max_kv_soft_pin_ttl=5", 1, "ERROR: --max_kv_soft_pin_ttl=5: must be at least the default soft pin of 30m0s (--default_kv_soft_pin_ttl=1800000)"},
		{"--put_start_release_timeout_sec=30", 1, "ERROR: --put_start_release_timeout_sec=30: must be larger than the discard timeout of 30s (--put_start_discard_timeout_sec=30)"},
		{"--client_active_ttl_sec=0", 1, "ERROR: --client_active_ttl_sec=0: must be positive"},
		{"--client_ttl=-3", 1, "ERROR: --client_ttl=-3: must be positive"},
		{"--release_behaviour=0.3.12", 1, "ERROR: --release_behaviour=0.3.12: want 0.3.14 or 0.3.13"},
		{"--release_behaviour=0.3.13 --client_suspicion_ttl_sec=0", 1, "ERROR: --client_suspicion_ttl_sec=0: must be positive"},
		{"--client_suspicion_ttl_sec=0", 1, "ERROR: --client_suspicion_ttl_sec=0: must be positive"},
		{"--tenant_quota_exceeded=maybe", 1, "ERROR: --tenant_quota_exceeded=maybe: want evict or reject"},
		{"--tenant_quota_connector_options=a=1,b", 1, `ERROR: --tenant_quota_connector_options=a=1,b: want NAME=VALUE separated by commas, got 'b' (a comma within a value is written \,)`},
		{"--tenant_quota_connector_options=a=1,a=2", 1, "ERROR: --tenant_quota_connector_options=a=1,a=2: the option 'a' is given twice"},
		{"--tenant_quota_connector_env=A=1", 1, "ERROR: --tenant_quota_connector_env=A=1: want names separated by commas, got 'A=1'; the values are those of the master's own environment"},
		{"--tenant_quota_connector_env=PLUGIN_X", 1, "ERROR: --tenant_quota_connector_env=PLUGIN_X: 'PLUGIN_X' belongs to the connector protocol and is set by the master"},
		{"--tenant_quota_connector_sha256=abc", 1, "ERROR: --tenant_quota_connector_sha256=abc: want 64 hexadecimal digits, got 3 characters; compute them with: sha256sum FILE"},
		{"--tenant_quota_connector_memory_limit=1GiB", 1, "ERROR: --tenant_quota_connector_memory_limit=1GiB: unsupported quota unit 'GiB'; want a number of bytes, optionally with B, KB, MB, GB or TB, or 0 for no limit"},
		{"--tenant_quota_connector_memory_limit=1MB", 1, "ERROR: --tenant_quota_connector_memory_limit=1MB: no connector runs in less than 16MB; want more, or 0 for no limit"},
		{"--tenant_quota_connector_start_timeout=0", 1, "ERROR: --tenant_quota_connector_start_timeout=0: must be positive"},
		{"--tenant_quota_max_removal_percent=101", 1, "ERROR: --tenant_quota_max_removal_percent=101: want 0 to 100"},
		{"--enable_multi_tenants", 1, "ERROR: --tenant_quota_connector_uri=: the tenant quota file connector requires a non-empty uri"},
		{"--enable_multi_tenants --tenant_quota_connector_type=foo --tenant_quota_connector_uri=x", 1, "ERROR: --tenant_quota_connector_type=foo: unsupported tenant quota connector type 'foo', want file or etcd, or name the folder of mooncake-connector-foo with --tenant_quota_connector_dir"},
		{"--enable_multi_tenants --tenant_quota_connector_type=etcd", 1, "ERROR: --tenant_quota_connector_uri=: the tenant quota etcd connector requires a non-empty uri"},
		{"--enable_multi_tenants --tenant_quota_connector_type=etcd --tenant_quota_connector_uri=x:y", 1, "ERROR: --tenant_quota_connector_uri=x:y: 'x:y' is no etcd endpoint: not readable, want [http://|https://]host[:port]"},
		{"--enable_multi_tenants --tenant_quota_connector_type=etcd --tenant_quota_connector_uri=a,b --enable_ha --etcd_endpoints=B:2379;c", 1, "ERROR: --tenant_quota_connector_uri=a,b: must match the etcd endpoints of high availability: these are {a:2379, b:2379}, those of --etcd_endpoints=B:2379;c are {b:2379, c:2379}"},
		{"--enable_multi_tenants --tenant_quota_connector_type=etcd --tenant_quota_connector_uri=a --enable_ha --etcd_endpoints=a --ha_backend_connstring=http://b/", 1, "ERROR: --tenant_quota_connector_uri=a: must match the etcd endpoints of high availability: these are {a:2379}, those of --ha_backend_connstring=http://b/ are {b:2379}"},
		{"--enable_multi_tenants --tenant_quota_connector_type=etcd --tenant_quota_connector_uri=a --enable_ha --etcd_endpoints=a:b", 1, "ERROR: --etcd_endpoints=a:b: 'a:b' is no etcd endpoint: not readable, want [http://|https://]host[:port]"},
		{"--enable_multi_tenants --tenant_quota_connector_type=../x --tenant_quota_connector_uri=x", 1, "ERROR: --tenant_quota_connector_type=../x: want file, etcd, or the name of a connector: letters, digits, '-' and '_'"},
		{"--enable_oplog", 1, "ERROR: --enable_oplog=1: requires --enable_ha=true"},
		{"--enable_oplog_snapshot", 1, "ERROR: --enable_oplog_snapshot=1: requires --enable_ha=true, --enable_oplog=true and --ha_backend_type=etcd"},
		{"--enable_ha", 1, "ERROR: --enable_ha=1: requires --ha_backend_connstring (or --etcd_endpoints with --ha_backend_type=etcd)"},
		{"--enable_ha --ha_backend_type=redis --etcd_endpoints=x", 1, "ERROR: --enable_ha=1: requires --ha_backend_connstring (or --etcd_endpoints with --ha_backend_type=etcd)"},
		{"--enable_ha --enable_oplog --ha_backend_type=redis --ha_backend_connstring=x", 1, "ERROR: --enable_oplog=1: requires --ha_backend_type=etcd"},
		{"--enable_ha --ha_backend_type=redis --ha_backend_connstring=x", 255, "ERROR: Failed to parse HA backend config: UNAVAILABLE_IN_CURRENT_MODE, backend_type=redis (--ha_backend_type=redis, want etcd)"},
		{"--enable_ha --ha_backend_type=foo --ha_backend_connstring=x", 255, "ERROR: Failed to parse HA backend config: INVALID_PARAMS, backend_type=foo (--ha_backend_type=foo, want etcd)"},
		{"--memory_allocator=foo", 1, "ERROR: --memory_allocator=foo: want offset or cachelib"},
		{"--offloading_queue_limit=0", 1, "ERROR: --offloading_queue_limit=0: must be greater than 0"},
		{"--offloading_queue_limit=100000001", 1, "ERROR: --offloading_queue_limit=100000001: must be at most 100000000"},
		{"--nof_heartbeat_interval_sec=0", 1, "ERROR: --nof_heartbeat_interval_sec=0: must be positive"},
		{"--nof_heartbeat_probe_timeout_ms=0", 1, "ERROR: --nof_heartbeat_probe_timeout_ms=0: must be positive"},
		{"--nof_heartbeat_failures_threshold=0", 1, "ERROR: --nof_heartbeat_failures_threshold=0: must be positive"},
		{"--dynamic_replication_mode=x", 1, "ERROR: --dynamic_replication_mode=x: want off, observe or enforce"},
		{"--dynamic_replication_admission_qps_threshold=0", 1, "ERROR: --dynamic_replication_admission_qps_threshold=0: must be greater than 0"},
		{"--weight_import_idle_timeout_ms=0", 1, "ERROR: --weight_import_idle_timeout_ms=0: must be positive"},
		{"--enable_snapshot --snapshot_retention_count=0", 1, "ERROR: --snapshot_retention_count=0: must be greater than 0"},
		{"--enable_snapshot", 1, "ERROR: --snapshot_object_store_type=: want local or s3 when snapshots are on"},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			e := testEnv(files)
			e.LookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
			out := Load(strings.Fields(test.args), e)
			first, rest, _ := strings.Cut(out.Stderr, "\n")
			if out.Config != nil || out.ExitCode != test.code || first != test.line {
				t.Errorf("exit %d, stderr\n%s\nwant exit %d and\n%s", out.ExitCode, out.Stderr, test.code, test.line)
			}
			if rest != "" && !strings.HasPrefix(rest, "ERROR: ") {
				t.Errorf("more on standard error than error lines: %q", rest)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct{ args, want string }{
		{"", ""},
		{"--enable_offload=false --max_retry_attempts=10 --rpc_thread_num=8 --vmodule=x=1", ""},
		{"--enable_offload --offload_on_evict --offload_force_evict --promotion_on_hit --max_total_pending_tasks=5 --root_fs_dir=/x", ""},
		{"--offload_on_evict", "--offload_on_evict and --offload_force_evict have no effect without --enable_offload"},
		{"--enable_offload --offload_force_evict", "--offload_force_evict has no effect without --offload_on_evict"},
		{"--promotion_admission_threshold=999", "--promotion_admission_threshold=999: 255 counts, want 1 to 255"},
		{"--promotion_admission_threshold=0", "--promotion_admission_threshold=0: 1 counts, want 1 to 255"},
		{"--nof_eviction_ratio=0.2", "flags about NVMe-oF are given but --enable_nof is off"},
		{"--nof_eviction_ratio=0.2 --enable_nof", ""},
		{"--enable_ha --etcd_endpoints=x", "--enable_ha=1 has no effect: this build is without high availability"},
		{"--enable_snapshot --snapshot_payload_store_type=local", "--enable_snapshot=1 has no effect: this build is without snapshots as in 0.3.13"},
		{"--snapshot_payload_store_type=local", "--snapshot_payload_store_type is deprecated"},
		{"--use_mmap_arena_allocator", ""},
		{"--promotion_on_hit", "--promotion_on_hit=1 has no effect without --enable_offload"},
		{"--kv_events_model_name=x", ""},
		{"--weight_management_oplog_capability_confirmed", "without the operation log"},
		{"--port=6000", "--port is deprecated"},
		{"--rpc_port=5 --port=6000", "both --rpc_port and --port are set, 5 of --rpc_port counts"},
		{"--max_threads=3", "--max_threads is deprecated"},
		{"--allocation_strategy=foo", "--allocation_strategy=foo is not known, random counts"},
		{"--allocation_strategy=random --enable_cxl", "--allocation_strategy=random has no effect with --enable_cxl"},
		{"--memory_allocator=cachelib", "offset counts"},
		{"--etcd_endpoints=x", "--enable_ha is off"},
		{"--etcd_endpoints=x --ha_backend_connstring=y", "--ha_backend_connstring=y counts"},
		{"--client_ttl=33 --client_active_ttl_sec=10", "set with different values, --client_active_ttl_sec=10 counts"},
		{"--client_ttl=33 --client_active_ttl_sec=33", ""},
		{"--tenant_quota_connector_uri=x", "--enable_multi_tenants is off"},
		{"--enable_metric_reporting false", "the argument 'false' is ignored, a setting is written --name=value"},
		{"--metrics_host=[::1]", ""},
		{"--enable_metadata_cleanup_on_timeout", "there is no metadata server to clean"},
		{"--enable_metadata_cleanup_on_timeout --enable_http_metadata_server", ""},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			out := Load(strings.Fields(test.args), testEnv(nil))
			if out.Config == nil {
				t.Fatalf("refused: %s", out.Stderr)
			}
			checkWarning(t, out.Warnings, test.want)
		})
	}
}

func TestPorts(t *testing.T) {
	tests := []struct {
		args string
		want int
	}{
		{"", 50051},
		{"--rpc_port=6000", 6000},
		{"--port=6000", 6000},
		{"--rpc_port=0 --port=6000", 6000},
		{"--rpc_port=6000 --port=0", 6000},
		{"--rpc_port=0", 0},
		{"--port=0", 0},
		{"--port=0 --rpc_port=0", 0},
	}
	for _, test := range tests {
		out := Load(strings.Fields(test.args), testEnv(nil))
		if out.Config == nil || out.Config.RPC.Port != test.want {
			t.Errorf("%q: %+v, want port %d", test.args, out, test.want)
		}
	}
	out := Load([]string{"--metrics_port=0", "--http_metadata_server_port=0", "--rpc_interface=eth7"}, testEnv(nil))
	if c := out.Config; c == nil || c.Admin.Port != 0 || c.Metadata.Port != 0 || c.RPC.Host != "10.9.8.7" {
		t.Errorf("got %+v", out)
	}
}

func TestEnvironment(t *testing.T) {
	files := map[string][]byte{
		"client.json": []byte(`{"metadata_server":"http://m:8080/metadata","list":[1]}`),
		"p2p.json":    []byte(`{"metadata_server":"P2PHANDSHAKE"}`),
		"broken.json": []byte(`{`),
	}
	on := []string{"--enable_metadata_cleanup_on_timeout"}
	tests := []struct {
		name    string
		args    []string
		env     map[string]string
		url     string
		warning string
	}{
		{"direct", on, map[string]string{"MOONCAKE_TE_META_DATA_SERVER": "https://h/metadata", "MOONCAKE_CONFIG_PATH": "client.json"}, "https://h/metadata", ""},
		{"by file", on, map[string]string{"MOONCAKE_CONFIG_PATH": "client.json"}, "http://m:8080/metadata", ""},
		{"handshake", on, map[string]string{"MOONCAKE_TE_META_DATA_SERVER": "P2PHANDSHAKE"}, "", `(MOONCAKE_TE_META_DATA_SERVER says "P2PHANDSHAKE")`},
		{"handshake by file", on, map[string]string{"MOONCAKE_CONFIG_PATH": "p2p.json"}, "", `(p2p.json says "P2PHANDSHAKE")`},
		{"broken file", on, map[string]string{"MOONCAKE_CONFIG_PATH": "broken.json"}, "", "MOONCAKE_CONFIG_PATH=broken.json: unexpected end of JSON input"},
		{"missing file", on, map[string]string{"MOONCAKE_CONFIG_PATH": "/nowhere.json"}, "", "MOONCAKE_CONFIG_PATH=/nowhere.json: No such file"},
		{"own server first", append(on, "--enable_http_metadata_server"), map[string]string{"MOONCAKE_TE_META_DATA_SERVER": "http://h"}, "", ""},
		{"off", nil, map[string]string{"MOONCAKE_TE_META_DATA_SERVER": "http://h"}, "", ""},
		{"rdma", nil, map[string]string{"MC_RPC_PROTOCOL": "rdma"}, "", "MC_RPC_PROTOCOL=rdma has no effect"},
		{"dfs", nil, map[string]string{"MOONCAKE_ENABLE_DFS": "1"}, "", "MOONCAKE_ENABLE_DFS=1 has no effect"},
		{"old dfs", nil, map[string]string{"MOONCAKE_DFS_ENABLED": "true"}, "", "MOONCAKE_DFS_ENABLED=true has no effect"},
		{"no dfs", nil, map[string]string{"MOONCAKE_DFS_ENABLED": "0"}, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := testEnv(files)
			e.LookupEnv = func(name string) (string, bool) { v, ok := test.env[name]; return v, ok }
			out := Load(test.args, e)
			if out.Config == nil {
				t.Fatalf("refused: %s", out.Stderr)
			}
			if out.Config.Metadata.RemoteURL != test.url {
				t.Errorf("url %q, want %q", out.Config.Metadata.RemoteURL, test.url)
			}
			checkWarning(t, out.Warnings, test.warning)
		})
	}
	e := testEnv(nil)
	env := map[string]string{"POD_NAME": "p", "POD_NAMESPACE": "n", "MC_STORE_CLUSTER_ID": "c", "MC_METADATA_CLUSTER_ID": "m"}
	e.LookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	c := Load([]string{"--cluster_id="}, e).Config
	if c == nil || c.HA.PodName != "p" || c.HA.PodNamespace != "n" || c.ClusterID != "c" || c.Metadata.ClusterID != "m" {
		t.Errorf("got %+v", c)
	}
	env = map[string]string{"MOONCAKE_ENABLE_DFS": "1"}
	out := Load([]string{"--enable_snapshot", "--snapshot_object_store_type=local"}, e)
	if want := "ERROR: MOONCAKE_ENABLE_DFS=1 can not be combined with snapshots or the operation log\n"; out.Stderr != want || out.ExitCode != 1 {
		t.Errorf("got %+v, want %q", out, want)
	}
}

// What belongs to another flag counts only with it.
func TestDependentFlags(t *testing.T) {
	for _, test := range []struct {
		args string
		want core.OffloadConfig
		hit  bool
	}{
		{"", core.OffloadConfig{}, false},
		{"--offload_on_evict --offload_force_evict --promotion_on_hit", core.OffloadConfig{}, false},
		{"--enable_offload --offload_force_evict --promotion_on_hit", core.OffloadConfig{Enabled: true}, true},
		{"--enable_offload --offload_on_evict --offload_force_evict", core.OffloadConfig{Enabled: true, OnEvict: true, ForceEvict: true}, false},
	} {
		out := Load(strings.Fields(test.args), testEnv(nil))
		if out.Config == nil {
			t.Fatalf("%s: %s", test.args, out.Stderr)
		}
		got := out.Config.core()
		test.want.QueueLimit, test.want.CapRatio = 50000, 0.5
		if got.Offload != test.want || got.Promotion.OnHit != test.hit {
			t.Errorf("%s: %+v, promotion %t", test.args, got.Offload, got.Promotion.OnHit)
		}
	}
}

// An empty command line makes the core's own defaults.
func TestCoreDefaults(t *testing.T) {
	if got, want := Default().core(), core.Default(); got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	out := Load(strings.Fields("--max_total_finished_tasks=1 --max_total_pending_tasks=2 --max_total_processing_tasks=4294967295 --pending_task_timeout_sec=0 --processing_task_timeout_sec=5 --max_retry_attempts=6 "+
		"--enable_nof --nof_eviction_ratio=0.1 --nof_eviction_high_watermark_ratio=0.2 --nof_heartbeat_interval_sec=3 --nof_heartbeat_probe_timeout_ms=40 --nof_heartbeat_failures_threshold=5 "+
		"--dynamic_replication_mode=observe --dynamic_replication_heat_window_seconds=6 --dynamic_replication_admission_qps_threshold=0.7 --dynamic_replication_max_memory_replicas=8 "+
		"--enable_offload --offloading_queue_limit=9 --offload_cap_ratio=0.1 --promotion_on_hit --promotion_admission_threshold=11 --promotion_queue_limit=12 --promotion_max_per_heartbeat=13 --root_fs_dir=/fs --cluster_id=c"), testEnv(nil))
	if out.Config == nil {
		t.Fatal(out.Stderr)
	}
	want := core.Default()
	want.Tasks = core.TaskConfig{MaxFinished: 1, MaxPending: 2, MaxProcessing: 1<<31 - 1, ProcessingTimeout: 5 * time.Second, MaxRetries: 6}
	want.NoF = core.NoFConfig{Enabled: true, EvictionRatio: 0.1, EvictionWatermark: 0.2, HeartbeatInterval: 3 * time.Second, ProbeTimeout: 40 * time.Millisecond, FailuresThreshold: 5}
	want.DynamicReplication = core.DynamicReplicationConfig{Mode: core.ReplicationObserve, HeatWindow: 6 * time.Second, AdmissionQPS: 0.7, MaxReplicas: 8}
	want.Offload = core.OffloadConfig{Enabled: true, QueueLimit: 9, CapRatio: 0.1}
	want.Promotion = core.PromotionConfig{OnHit: true, Admission: 11, QueueLimit: 12, MaxPerHeartbeat: 13}
	want.Disk = core.DiskConfig{Root: "/fs", ClusterID: "c"}
	if got := out.Config.core(); got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// One setting makes it release 0.3.13; what is written down beside it stays.
func TestReleaseBehaviour(t *testing.T) {
	for _, test := range []struct {
		args      string
		suspicion time.Duration
		watermark float64
		pin       time.Duration
		old       bool
	}{
		{"", 20 * time.Second, 0.9, 168 * time.Hour, false},
		{"--release_behaviour=0.3.14", 20 * time.Second, 0.9, 168 * time.Hour, false},
		{"--release_behaviour=0.3.13", 0, 0, 24 * time.Hour, true},
		{"--release_behaviour=0.3.13 --client_suspicion_ttl_sec=5 --tenant_eviction_high_watermark_ratio=0.5 --max_kv_soft_pin_ttl=2h", 5 * time.Second, 0.5, 2 * time.Hour, true},
	} {
		out := Load(strings.Fields(test.args), testEnv(nil))
		if out.Config == nil {
			t.Fatalf("%s: %s", test.args, out.Stderr)
		}
		k := out.Config.core()
		if k.ClientSuspicionTTL != test.suspicion || k.TenantWatermark != test.watermark || k.MaxSoftPinTTL != test.pin || k.Release0313 != test.old || k.GlobalEviction != test.old {
			t.Errorf("%s: %+v", test.args, k)
		}
	}
}

func TestClamp(t *testing.T) {
	out := Load(strings.Fields("--promotion_admission_threshold=999 --promotion_max_per_heartbeat=0 --dynamic_replication_heat_window_seconds=0 --dynamic_replication_max_memory_replicas=0 --allocation_strategy=nope"), testEnv(nil))
	c := out.Config
	if c == nil || c.Promotion.Threshold != 255 || c.Promotion.PerHeartbeat != 1 || c.DynamicReplication.Window != time.Second ||
		c.DynamicReplication.MaxReplicas != 1 || c.Placement.Strategy != StrategyRandom {
		t.Errorf("got %+v", out)
	}
}

func TestHelpAndVersion(t *testing.T) {
	tests := []struct {
		args     string
		code     int
		has, not string
	}{
		{"--version", 0, "mooncake_master version 1.2.3 (test)\n", "ERROR"},
		{"--bogus --version", 0, "mooncake_master version 1.2.3 (test)\n", "ERROR"},
		{"--version --rpc_port=x", 0, "mooncake_master version 1.2.3 (test)\n", "ERROR"},
		{"--help", 1, "-rpc_port (", "\x00"},
		{"--help --bogus", 1, "-vmodule (", "\x00"},
		{"--helpfull", 1, "no effect yet: this build is", "\x00"},
		{"--helppackage", 1, "-flagfile (", "\x00"},
		{"--helpshort", 1, "-rpc_port (", "-enable_ha ("},
		{"--helpon=tenants", 1, "-enable_multi_tenants (", "-rpc_port ("},
		{"--helpmatch=quota", 1, "-quota_bytes (", "-rpc_port ("},
		{"--helpmatch=nothing_like_this", 1, "No flags matched", "-rpc_port ("},
		{"--helpxml --rpc_port=7", 1, "<name>rpc_port</name>", "\x00"},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			out := Load(strings.Fields(test.args), testEnv(nil))
			if out.Config != nil || out.ExitCode != test.code || out.Stderr != "" || !strings.Contains(out.Stdout, test.has) || strings.Contains(out.Stdout, test.not) {
				t.Errorf("exit %d, stderr %q, stdout\n%s", out.ExitCode, out.Stderr, out.Stdout)
			}
			for _, line := range strings.Split(out.Stdout, "\n") {
				if len(line) > 140 && !strings.HasPrefix(strings.TrimSpace(line), "<") {
					t.Errorf("long line: %s", line)
				}
			}
		})
	}
}

func TestDocs(t *testing.T) {
	const page = "../../../docs/flags.md"
	if *update {
		if err := os.WriteFile(page, []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != Markdown() {
		t.Errorf("docs/flags.md does not say what the table says; run with -update")
	}
}

func TestLog(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 8, 9, 10, 11, 12, 0, time.UTC)
	w, closeLog, err := LogConfig{Dir: dir}.Open(now, 77, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if err := closeLog(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(dir + "/mooncake_master.INFO"); err != nil || string(b) != "hello\n" {
		t.Errorf("%q %v", b, err)
	}
	if to, _ := os.Readlink(dir + "/mooncake_master.INFO"); to != "mooncake_master.20260809-101112.77" {
		t.Errorf("link to %q", to)
	}
	if _, _, err := (LogConfig{Dir: dir + "/none"}).Open(now, 1, os.Stderr); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("got %v", err)
	}
	if w, _, err := (LogConfig{Dir: dir, ToStderr: true}).Open(now, 1, os.Stderr); err != nil || w != os.Stderr {
		t.Errorf("got %v %v", w, err)
	}
	for level, config := range map[string]LogConfig{"info": {}, "warn": {MinLevel: 1, Verbosity: 3}, "error": {MinLevel: 3}, "debug": {Verbosity: 1}, "trace": {Verbosity: 9}} {
		if got := config.Level().String(); got != level {
			t.Errorf("%+v: %s, want %s", config, got, level)
		}
	}
}

func FuzzCommandLine(f *testing.F) {
	f.Add("--rpc_port=5 x --enable_ha")
	f.Add("--flagfile=a --undefok=b --nob")
	f.Add("--config_path=a.yaml --default_kv_lease_ttl=5s")
	f.Add("--config_path=a.json")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		files := map[string][]byte{"a": []byte(line), "a.yaml": []byte(line), "a.json": []byte(line)}
		e := testEnv(nil)
		e.ReadFile = func(path string) ([]byte, error) {
			if b, ok := files[path]; ok {
				return b, nil
			}
			return nil, os.ErrNotExist
		}
		out := Load(args, e)
		if out.Config == nil && out.Stdout == "" && out.Stderr == "" {
			t.Errorf("ended without a word: %+v", out)
		}
		if out.Config != nil {
			if err := out.Config.Validate(); err != nil {
				t.Errorf("returned but not valid: %v", err)
			}
		}
	})
}

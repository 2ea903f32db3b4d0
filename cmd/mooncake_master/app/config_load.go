package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Environment is what Load needs of the world, so that tests can make their own.
type Environment struct {
	Program     string // base name of the executable
	Version     string // our version, as --version and /version show it
	LookupEnv   func(string) (string, bool)
	ReadFile    func(string) ([]byte, error)
	InterfaceIP func(name string) (string, error)
}

// System returns the environment of the running process.
func System(version string) Environment {
	program := "mooncake_master"
	if len(os.Args) > 0 && os.Args[0] != "" {
		program = filepath.Base(os.Args[0])
	}
	return Environment{Program: program, Version: version, LookupEnv: os.LookupEnv, ReadFile: os.ReadFile, InterfaceIP: interfaceIPv4}
}

// Outcome is what Load found: a Config to run with, or the end of the process. What is to be
// printed comes first in both cases.
type Outcome struct {
	Config   *Config // nil: exit with ExitCode
	Stdout   string
	Stderr   string
	ExitCode int
	Warnings []string // for the log, one line each
}

// Load turns a command line (without the program name) into a checked Config. Nothing is
// printed and the process is not ended here; the caller does what the Outcome says.
func Load(args []string, env Environment) Outcome {
	p := newParser(env)
	p.parse(args)
	if p.fatal == "" {
		if out, asked := p.help(); asked {
			return out
		}
	}
	if lines := p.report(); len(lines) > 0 {
		return Outcome{Stderr: strings.Join(lines, "\n") + "\n", ExitCode: 1}
	}
	c := Default()
	c.RPC.Port = 0 // "not given" until resolvePort
	for i := range table {
		f := &table[i]
		if v, ok := p.values[f.Name]; ok {
			f.store(c, v.parsed)
			c.origins[f.Name] = v.origin
		}
	}
	out := Outcome{Warnings: p.warnings}
	fail := func(code int, err error) Outcome {
		out.Config, out.ExitCode = nil, code
		out.Stderr = "ERROR: " + oneLine(err.Error()) + "\n"
		return out
	}
	if c.ConfigPath != "" {
		out.Stdout = "Loading config from: " + c.ConfigPath + "\n"
		entries, err := readConfigFile(c.ConfigPath, env.ReadFile)
		if err == nil {
			err = c.applyFile(c.ConfigPath, entries, &out.Warnings)
		}
		if err != nil {
			return fail(1, err)
		}
	}
	if err := c.resolve(env, &out.Warnings); err != nil {
		return fail(1, err)
	}
	if err := c.Validate(); err != nil {
		code := 1
		var exit *exitError
		if errors.As(err, &exit) {
			code = exit.code
		}
		return fail(code, err)
	}
	out.Warnings = append(out.Warnings, c.Warnings()...)
	c.clamp()
	out.Config = c
	return out
}

// oneLine keeps an error on one line whatever text it quotes.
func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s)
}

// resolve settles what depends on more than one flag or on the environment.
func (c *Config) resolve(env Environment, warnings *[]string) error {
	c.resolvePort(warnings)
	c.resolveClientTTL(warnings)
	c.resolveBehaviour()
	if name := c.RPC.Interface; name != "" {
		ip, err := env.InterfaceIP(name)
		if err != nil {
			return fmt.Errorf("%s: %w", c.origin("rpc_interface"), err)
		}
		c.RPC.Host = ip
	}
	lookup := func(name string) string {
		v, _ := env.LookupEnv(name)
		return v
	}
	if c.HA.PodName == "" {
		c.HA.PodName = lookup("POD_NAME")
	}
	if c.HA.PodNamespace == "" {
		c.HA.PodNamespace = lookup("POD_NAMESPACE")
	}
	if c.ClusterID == "" {
		c.ClusterID = lookup("MC_STORE_CLUSTER_ID")
	}
	if c.ClusterID == "" {
		c.ClusterID = byName["cluster_id"].Default
	}
	if strings.EqualFold(lookup("MC_RPC_PROTOCOL"), "rdma") {
		*warnings = append(*warnings, "MC_RPC_PROTOCOL=rdma has no effect: this build serves its RPCs over TCP only")
	}
	for _, name := range []string{"MOONCAKE_ENABLE_DFS", "MOONCAKE_DFS_ENABLED"} {
		if v, err := parseValue(Bool, lookup(name)); err == nil && v.(bool) {
			if c.Oplog.Enabled || c.Snapshot.Enabled || c.Snapshot.Restore {
				return fmt.Errorf("%s=%s can not be combined with snapshots or the operation log", name, lookup(name))
			}
			*warnings = append(*warnings, name+"="+lookup(name)+" has no effect: replicas in a distributed file system are not part of this build")
			break
		}
	}
	c.Metadata.ClusterID = lookup("MC_METADATA_CLUSTER_ID")
	if c.Metadata.CleanupOnTimeout && !c.Metadata.Enabled {
		url, instead := remoteMetadata(env)
		if url == "" {
			c.Metadata.CleanupOnTimeout = false
			*warnings = append(*warnings, "--enable_metadata_cleanup_on_timeout has no effect: there is no metadata server to clean, neither --enable_http_metadata_server nor an http address in MOONCAKE_TE_META_DATA_SERVER or in the file MOONCAKE_CONFIG_PATH names"+instead)
		}
		c.Metadata.RemoteURL = url
	}
	return nil
}

// resolvePort leaves the port to bind in RPC.Port. --rpc_port counts unless it is 0; then
// --port does. The two places where 0 is meant as "any free port" are --port=0, and
// --rpc_port=0 (or rpc_port: 0 in the file) without a --port.
func (c *Config) resolvePort(warnings *[]string) {
	rpc, old := c.origin("rpc_port"), c.origin("port")
	if old.Given() && !sameText(byName["port"], old.Text) {
		*warnings = append(*warnings, "--port is deprecated, use --rpc_port instead")
		if c.RPC.Port != 0 {
			*warnings = append(*warnings, fmt.Sprintf("both --rpc_port and --port are set, %d of --rpc_port counts", c.RPC.Port))
		}
	}
	if c.RPC.Port != 0 || rpc.Given() && !old.Given() {
		return
	}
	c.RPC.Port = c.RPC.OldPort
}

// resolveBehaviour sets what nobody has written down as the release has it that was chosen.
func (c *Config) resolveBehaviour() {
	if c.Behaviour != Behaviour0313 {
		return
	}
	if !c.origin("client_suspicion_ttl_sec").Given() {
		c.Clients.SuspicionTTL = 0
	}
	if !c.origin("tenant_eviction_high_watermark_ratio").Given() {
		c.Eviction.TenantHighWatermark = 0
	}
	if !c.origin("max_kv_soft_pin_ttl").Given() {
		c.Objects.MaxSoftPinTTL = 24 * time.Hour
	}
}

// resolveClientTTL leaves the time to suspicion in Clients.ActiveTTL. The command line wins
// over the file, and within each the newer name over the older.
func (c *Config) resolveClientTTL(warnings *[]string) {
	active, old := c.origin("client_active_ttl_sec"), c.origin("client_ttl")
	if !old.Given() {
		return
	}
	sameRank := (active.Source == FromConfigFile) == (old.Source == FromConfigFile)
	useOld := !active.Given() || active.Source == FromConfigFile && old.Source != FromConfigFile
	if active.Given() && sameRank && c.Clients.ActiveTTL != c.Clients.OldTTL {
		*warnings = append(*warnings, fmt.Sprintf("both %s and the deprecated %s are set with different values, %s counts", active, old, active))
	}
	if useOld {
		c.Clients.ActiveTTL = c.Clients.OldTTL
		c.origins["client_active_ttl_sec"] = old
	}
}

// remoteMetadata finds the address of a metadata server outside this process. Only http and
// https count. The second result says what was found instead, for the warning.
func remoteMetadata(env Environment) (url, instead string) {
	address, source := "", ""
	if v, ok := env.LookupEnv("MOONCAKE_TE_META_DATA_SERVER"); ok && v != "" {
		address, source = v, "MOONCAKE_TE_META_DATA_SERVER"
	} else if path, ok := env.LookupEnv("MOONCAKE_CONFIG_PATH"); ok && path != "" {
		content, err := env.ReadFile(path)
		if err != nil {
			return "", fmt.Sprintf(" (MOONCAKE_CONFIG_PATH=%s: %s)", path, reason(err))
		}
		var client struct {
			MetadataServer string `json:"metadata_server"`
		}
		if err := json.Unmarshal(content, &client); err != nil {
			return "", fmt.Sprintf(" (MOONCAKE_CONFIG_PATH=%s: %s)", path, oneLine(err.Error()))
		}
		address, source = client.MetadataServer, path
	}
	switch {
	case strings.HasPrefix(address, "http://"), strings.HasPrefix(address, "https://"):
		return address, ""
	case address == "":
		return "", ""
	default:
		return "", fmt.Sprintf(" (%s says %q)", source, address)
	}
}

// interfaceIPv4 returns the first IPv4 address of a network interface.
func interfaceIPv4(name string) (string, error) {
	nic, err := net.InterfaceByName(name)
	if err != nil {
		return "", fmt.Errorf("network interface '%s' was not found", name)
	}
	addresses, err := nic.Addrs()
	if err != nil {
		return "", fmt.Errorf("addresses of network interface '%s': %w", name, err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			return n.IP.String(), nil
		}
	}
	return "", fmt.Errorf("network interface '%s' has no IPv4 address", name)
}

// reason shortens a file error to what went wrong; the path is named by the caller.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, fs.ErrNotExist) {
		return "No such file or directory"
	}
	return err.Error()
}

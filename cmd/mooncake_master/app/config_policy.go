package app

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// Options returns the settings for the connector by name, nil when there are none. They are
// written NAME=VALUE with commas between them; within a value \, stands for a comma and \\ for
// a backslash.
func (t *TenantsConfig) Options() (map[string]string, error) {
	if strings.TrimSpace(t.ConnectorOptions) == "" {
		return nil, nil
	}
	options := map[string]string{}
	for _, pair := range splitEscaped(t.ConnectorOptions) {
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		switch _, twice := options[name]; {
		case !ok || name == "":
			return nil, fmt.Errorf(`want NAME=VALUE separated by commas, got '%s' (a comma within a value is written \,)`, pair)
		case twice:
			return nil, fmt.Errorf("the option '%s' is given twice", name)
		}
		options[name] = value
	}
	return options, nil
}

// splitEscaped splits at the commas that have no backslash before them, and takes those
// backslashes away.
func splitEscaped(s string) []string {
	var parts []string
	var part strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == ',' || s[i+1] == '\\'):
			i++
			part.WriteByte(s[i])
		case s[i] == ',':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(s[i])
		}
	}
	return append(parts, part.String())
}

// EnvNames returns the names of the variables that the connector is given.
func (t *TenantsConfig) EnvNames() ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(t.ConnectorEnv, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "":
		case strings.ContainsAny(name, "= \t"):
			return nil, fmt.Errorf("want names separated by commas, got '%s'; the values are those of the master's own environment", name)
		case strings.HasPrefix(name, "PLUGIN_"), strings.HasPrefix(name, "MOONCAKE_CONNECTOR_"):
			return nil, fmt.Errorf("'%s' belongs to the connector protocol and is set by the master", name)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// MemoryLimit returns the bytes that the connector may use, 0 for any number.
func (t *TenantsConfig) MemoryLimit() (uint64, error) {
	if t.ConnectorMemory == "0" {
		return 0, nil
	}
	n, err := policydoc.ParseQuota(t.ConnectorMemory)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w; want a number of bytes, optionally with B, KB, MB, GB or TB, or 0 for no limit", err)
	case n < 16<<20:
		return 0, fmt.Errorf("no connector runs in less than 16MB; want more, or 0 for no limit")
	}
	return n, nil
}

// checkConnector checks what the connector's process is given.
func (c *Config) checkConnector() error {
	t := &c.Tenants
	if _, err := t.Options(); err != nil {
		return c.bad("tenant_quota_connector_options", "%w", err)
	}
	if _, err := t.EnvNames(); err != nil {
		return c.bad("tenant_quota_connector_env", "%w", err)
	}
	if _, err := t.MemoryLimit(); err != nil {
		return c.bad("tenant_quota_connector_memory_limit", "%w", err)
	}
	if sum, err := hex.DecodeString(t.ConnectorSHA256); err != nil || len(sum) != 0 && len(sum) != 32 {
		return c.bad("tenant_quota_connector_sha256", "want 64 hexadecimal digits, got %d characters; compute them with: sha256sum FILE", len(t.ConnectorSHA256))
	}
	if t.ConnectorStartTimeout <= 0 {
		return c.bad("tenant_quota_connector_start_timeout", "must be positive")
	}
	if t.MaxRemovalPercent < 0 || t.MaxRemovalPercent > 100 {
		return c.bad("tenant_quota_max_removal_percent", "want 0 to 100")
	}
	return nil
}

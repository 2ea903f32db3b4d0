package app

import (
	"strings"
	"testing"
)

// TestSameEtcd spells the same endpoints in different ways.
func TestSameEtcd(t *testing.T) {
	for _, line := range []string{
		"--tenant_quota_connector_uri=a:2379,b",
		"--tenant_quota_connector_uri=http://B:2379/;A --enable_ha --etcd_endpoints=a;b:2379",
		"--tenant_quota_connector_uri=a,b,a --enable_ha --etcd_endpoints=x --ha_backend_connstring=https://b,https://a",
		"--tenant_quota_connector_uri=[::1] --enable_ha --etcd_endpoints=http://[0:0::1]:2379",
		"--tenant_quota_connector_uri=a --etcd_endpoints=not-used",
	} {
		out := Load(strings.Fields("--enable_multi_tenants --tenant_quota_connector_type=etcd "+line), testEnv(nil))
		if out.Config == nil || out.Config.Tenants.ConnectorType != "etcd" {
			t.Errorf("%s: %s", line, out.Stderr)
		}
	}
}

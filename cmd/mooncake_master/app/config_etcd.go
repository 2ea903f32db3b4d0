package app

import (
	"slices"
	"strings"

	"github.com/mooncake-go/mooncake-master/plugins/etcd"
)

// checkEtcd compares the etcd of the tenants' quotas with that of the election and the operation
// log: one cluster of masters has one etcd.
func (c *Config) checkEtcd() error {
	if !c.Tenants.Enabled || c.Tenants.ConnectorType != "etcd" {
		return nil
	}
	policy, err := etcd.Endpoints(c.Tenants.ConnectorURI)
	if err != nil {
		return c.bad("tenant_quota_connector_uri", "%w", err)
	}
	if !c.HA.Enabled || c.HA.Backend != "etcd" {
		return nil
	}
	flag, list := "ha_backend_connstring", c.HA.Connection
	if list == "" {
		flag, list = "etcd_endpoints", c.HA.EtcdEndpoints
	}
	election, err := etcd.Endpoints(list)
	if err != nil {
		return c.bad(flag, "%w", err)
	}
	if !slices.Equal(policy, election) {
		return c.bad("tenant_quota_connector_uri", "must match the etcd endpoints of high availability: these are {%s}, those of %s are {%s}",
			strings.Join(policy, ", "), c.origin(flag), strings.Join(election, ", "))
	}
	return nil
}

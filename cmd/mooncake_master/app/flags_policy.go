package app

// policyFlags are about the connector that brings the tenants' quotas and what is done with them.
var policyFlags = []Flag{
	{
		Name: "tenant_quota_connector_options", Kind: String, Default: "", Group: GroupTenants,
		Help: `further settings of the connector, NAME=VALUE separated by commas; \, is a comma within a value. Secrets belong into files that an option names`,
		bind: func(c *Config) any { return &c.Tenants.ConnectorOptions },
	},
}

package app

// policyFlags are about the connector that brings the tenants' quotas and what is done with them.
var policyFlags = []Flag{
	{
		Name: "tenant_quota_connector_options", Kind: String, Default: "", Group: GroupTenants,
		Help: `further settings of the connector, NAME=VALUE separated by commas; \, is a comma within a value. Secrets belong into files that an option names`,
		bind: func(c *Config) any { return &c.Tenants.ConnectorOptions },
	},
	{
		Name: "tenant_quota_connector_env", Kind: String, Default: "", Group: GroupTenants,
		Help: "names of environment variables, separated by commas, that the connector is given; of the rest it gets only PATH, HOME, TMPDIR, LANG and TZ",
		bind: func(c *Config) any { return &c.Tenants.ConnectorEnv },
	},
	{
		Name: "tenant_quota_connector_sha256", Kind: String, Default: "", Group: GroupTenants,
		Help: "SHA-256 that the connector's executable must have, 64 hexadecimal digits, looked at before each start of it",
		bind: func(c *Config) any { return &c.Tenants.ConnectorSHA256 },
	},
	{
		Name: "tenant_quota_connector_memory_limit", Kind: String, Default: "1GB", Group: GroupTenants,
		Help: "memory that the connector and its children may use, in bytes or with B, KB, MB, GB, TB; with more it is started again. 0 = no limit",
		bind: func(c *Config) any { return &c.Tenants.ConnectorMemory },
	},
	{
		Name: "tenant_quota_connector_start_timeout", Kind: Duration, Default: "10s", Group: GroupTenants,
		Help: "time the connector has from being started to being reachable",
		bind: func(c *Config) any { return &c.Tenants.ConnectorStartTimeout },
	},
	{
		Name: "tenant_quota_connector_required", Kind: Bool, Default: "true", Group: GroupTenants,
		Help: "do not start when the connector or its document is bad; off, the master starts on the policy stored in --state_dir, or without one, refusing writes, until the source is good",
		bind: func(c *Config) any { return &c.Tenants.ConnectorRequired },
	},
	{
		Name: "tenant_quota_max_removal_percent", Kind: Int32, Default: "100", Group: GroupTenants,
		Help: "largest share of the tenants that a change at the source may remove at once; one that removes more is held back until a person confirms it. 100 = any",
		bind: func(c *Config) any { return &c.Tenants.MaxRemovalPercent },
	},
	{
		Name: "state_dir", Kind: String, Default: "", Group: GroupGeneral,
		Help: "folder for what is to outlive this process, made if need be: the last good tenant-quota policy. Each master needs its own",
		bind: func(c *Config) any { return &c.StateDir },
	},
}

package app

import "slices"

// Stock lists the types of connectors that this executable serves itself, see Connector.
func Stock() []string { return slices.Clone(stock) }

package conformance

import "slices"

// cases are all cases in their order. Names are stable: they stand in people's filters and
// build servers.
var cases = slices.Concat(startCases, configureCases, watchCases, sourceCases, limitCases, saveCases, lifeCases)

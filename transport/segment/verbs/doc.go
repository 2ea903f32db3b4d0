// Package verbs is libibverbs for Go: devices, memory regions, reliable connected queue pairs, one completion
// queue for each device, and events.
//
// It is built with the tag rdma, by cgo, and needs the headers of libibverbs (libibverbs-dev). Without the tag
// there is no cgo: everything is declared, and Open says how to build it.
package verbs

// Package rdma moves bytes between registered memory of this process and memory that others have lent, by RDMA,
// as the released clients do.
//
// An Adapter holds the devices. A Region is memory that they know. A Peer is what an owner has published. Between a
// device here (nic) and one there stands an endpoint: a few queue pairs that serve both directions, made by whoever
// needs them first (handshake.go). A transfer is a job: it is cut into slices, which are dealt to endpoints and come
// back done or failed; failed ones go another way (rail.go) until they have been tried often enough.
//
// Memory is given back to a caller only when no adapter uses it any more, whatever happens.
package rdma

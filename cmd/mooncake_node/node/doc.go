// Package node is a storage node: it lends memory to a Mooncake pool, stays in it through restarts of the
// master and of the metadata store, carries out the copies and moves that the master gives it, and leaves with
// everything moved to others.
//
//	n, err := node.New(node.Config{Master: "10.0.0.5:50051", Metadata: segment.P2P, Name: "10.0.0.6:50052", SegmentBytes: 4 << 30})
//	err = n.Run(ctx, stop)
//
// One Node has four loops: pings, tasks, the metadata store and the HTTP interface; Run owns them and waits for
// them.
package node

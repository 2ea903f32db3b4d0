// Package client puts values into a Mooncake pool and gets them back: the master says where, and the
// bytes go straight to and from the memory of whoever lends it.
//
//	c, err := client.Dial(ctx, client.Config{Master: "127.0.0.1:50051", Metadata: segment.P2P, Tenant: "team-a"})
//	err = c.Put(ctx, "key", value)
//	value, err := c.Get(ctx, "key")
//
// What the master refuses is an errcode.Code inside the error: errors.Is(err, errcode.ObjectNotFound).
// Deadlines are those of the contexts. A Client is safe for concurrent use.
package client

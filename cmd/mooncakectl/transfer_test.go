package main

import (
	"testing"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

func TestTransfers(t *testing.T) {
	t.Parallel()
	address, admin := master(t)
	m := newMover(t, address, 2)
	m.idle.Store(true)
	move := func(key string) string {
		made := call(t, m.c, wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: key, TenantID: "default", Source: "a", Target: "b"})
		if made.Code != errcode.OK {
			t.Fatal(made.Code)
		}
		return made.Value.String()
	}
	fetched, waiting := move("k0"), ""
	if got := call(t, m.c, wire.FetchTasks, wire.FetchTasksRequest{ClientID: clientID(1), BatchSize: 1}); len(got.Value) != 1 {
		t.Fatalf("fetched %+v", got)
	}
	waiting = move("k1")
	all := decode[[]transferView](t, ctl(t, "", "transfers", "list", "-o", "json", "--master", admin))
	if len(all) != 1 || all[0].ID != fetched || all[0].Type != "MOVE" || all[0].Executor != "client" || all[0].Bytes != 1<<20 || all[0].Key != "k0" || all[0].Source != "a" || all[0].Client != "1-1" || all[0].Since == 0 {
		t.Errorf("%+v", all)
	}
	ctl(t, "", "transfers", "list", "--master", admin).want(t, exitOK, "1MB", "")
	ctl(t, "", "transfers", "cancel", fetched, "--master", admin).want(t, exitFailed, "", "is carried out by a client")
	ctl(t, "", "transfers", "cancel", waiting, "--master", admin).want(t, exitOK, "", "is given up")
	ctl(t, "", "transfers", "cancel", waiting, "--master", admin).want(t, exitFailed, "", "there is no transfer")
	ctl(t, "", "transfers", "cancel", "x", "--master", admin).want(t, exitUsage, "", `"x" is no transfer`)
}

package task

import (
	"encoding/json"
	"reflect"
	"testing"
)

// task_executor_test: the payloads, byte by byte as the C++ master of 0.3.14 writes them.
func TestPayloads(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{
			(&CopyPayload{TenantID: "default", Key: "k", Source: "s1", Targets: []string{"s3", "s3", "s1"}}).JSON(),
			`{"tenant_id":"default","key":"k","source":"s1","targets":["s3","s3","s1"],"dynamic_replication_lease_id_high":0,"dynamic_replication_lease_id_low":0,"dynamic_replication_version_epoch":0}`,
		},
		{
			(&CopyPayload{TenantID: "a", Key: "a", Source: "s1", Targets: []string{"s3"}, LeaseHigh: 15152562270194118410, LeaseLow: 18332568091399725241, Epoch: 1796063959605}).JSON(),
			`{"tenant_id":"a","key":"a","source":"s1","targets":["s3"],"dynamic_replication_lease_id_high":15152562270194118410,"dynamic_replication_lease_id_low":18332568091399725241,"dynamic_replication_version_epoch":1796063959605}`,
		},
		{
			(&CopyPayload{}).JSON(),
			`{"tenant_id":"","key":"","source":"","targets":[],"dynamic_replication_lease_id_high":0,"dynamic_replication_lease_id_low":0,"dynamic_replication_version_epoch":0}`,
		},
		{
			(&MovePayload{TenantID: "default", Key: "a\x00b\x7f/\b\f\r\x1f", Source: "s1", Target: "s3"}).JSON(),
			`{"tenant_id":"default","key":"a\u0000b` + "\x7f" + `/\b\f\r\u001F","source":"s1","target":"s3"}`,
		},
		{
			(&MovePayload{TenantID: "default", Key: "\"q\\/\n\t\x01é<&>\u2028", Source: "s1", Target: "s3"}).JSON(),
			`{"tenant_id":"default","key":"\"q\\/\n\t\u0001\u00E9<&>\u2028","source":"s1","target":"s3"}`,
		},
		{
			(&MovePayload{TenantID: "default", Key: "😀é€", Source: "s1", Target: "s3"}).JSON(),
			`{"tenant_id":"default","key":"\uD83D\uDE00\u00E9\u20AC","source":"s1","target":"s3"}`,
		},
		{ // the original writes none for such a key
			(&MovePayload{Key: "a\xff\xfeb\ufffd"}).JSON(),
			`{"tenant_id":"","key":"a` + "\xff\xfe" + `b\uFFFD","source":"","target":""}`,
		},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

// Readers of JSON find what was written.
func TestPayloadsRoundTrip(t *testing.T) {
	for _, key := range []string{"k", "", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "héllo wörld €", "😀\u2028\U0010ffff", "</script>"} {
		c := CopyPayload{TenantID: "t-" + key, Key: key, Source: key, Targets: []string{key, "b"}, LeaseHigh: 1<<64 - 1, LeaseLow: 2, Epoch: 3}
		var gotCopy CopyPayload
		if err := json.Unmarshal([]byte(c.JSON()), &gotCopy); err != nil || !reflect.DeepEqual(gotCopy, c) {
			t.Errorf("%s reads as %+v (%v)", c.JSON(), gotCopy, err)
		}
		m := MovePayload{TenantID: "t-" + key, Key: key, Source: key, Target: "b"}
		var gotMove MovePayload
		if err := json.Unmarshal([]byte(m.JSON()), &gotMove); err != nil || gotMove != m {
			t.Errorf("%s reads as %+v (%v)", m.JSON(), gotMove, err)
		}
	}
}

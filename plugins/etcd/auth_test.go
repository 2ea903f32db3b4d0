package etcd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// TestAuthentication goes through a cluster's life with users: tokens that live a second,
// permissions given and taken, passwords changed.
func TestAuthentication(t *testing.T) {
	s := startServer(t, func(c *embed.Config) { c.AuthTokenTTL = 1 })
	key := keyOf(t)
	as := func(user, secret string) func(*clientv3.Config) {
		return func(c *clientv3.Config) { c.Username, c.Password = user, secret }
	}
	secured(t, operator(t, s.client), key)
	root := operator(t, s.client, as("root", "rootpw"))
	put(t, root, key, "one")

	secret := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("readpw\n")
	nobody := connect(t, s.client)
	_, err := nobody.Load(t.Context())
	unavailableAs(t, err, sdk.Auth, "wants a user name", "password_file")

	reader := connect(t, s.client, "user", "reader", "password_file", secret, "reconcile", "200ms")
	r := watching(t, reader)
	r.await(t, "doc one")
	doc, err := reader.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Save(t.Context(), []byte("x"), doc.Revision); err == nil || !strings.Contains(err.Error(), "read-only") ||
		!strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "user 'reader'") {
		t.Errorf("saving without the right to: %v", err)
	}
	// A token nobody uses is gone after a second or two.
	idle := connect(t, s.client, "user", "reader", "password_file", secret)
	if _, err := idle.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2500 * time.Millisecond)
	if _, err := idle.Load(t.Context()); err != nil {
		t.Errorf("with an expired token: %v", err)
	}
	put(t, root, key, "two")
	r.await(t, "doc two")

	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(root.UserRevokeRole(t.Context(), "reader", "read"))
	if why := r.await(t, "auth"); !strings.Contains(why, key) || !strings.Contains(why, "user 'reader'") || !strings.Contains(why, "permission denied") {
		t.Errorf("%q names neither key nor user", why)
	}
	must(root.UserGrantRole(t.Context(), "reader", "read"))
	put(t, root, key, "three")
	r.await(t, "doc three")

	must(root.UserChangePassword(t.Context(), "reader", "newpw"))
	_, err = connect(t, s.client, "user", "reader", "password_file", secret).Load(t.Context())
	unavailableAs(t, err, sdk.Auth, "user 'reader'", secret)
	r.await(t, "auth")
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, why := r.last(); strings.Contains(why, "user 'reader' has no password") && strings.Contains(why, "no such file") {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%q does not say that the password file is gone", why)
		}
	}
	write("newpw")
	put(t, root, key, "four")
	r.await(t, "doc four")
}

// secured makes users and turns authentication on.
func secured(t *testing.T, c *clientv3.Client, key string) {
	t.Helper()
	ctx := t.Context()
	for _, step := range []func() error{
		func() error { _, err := c.RoleAdd(ctx, "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "root", "rootpw"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.RoleAdd(ctx, "read"); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, "read", key, "", clientv3.PermissionType(clientv3.PermRead))
			return err
		},
		func() error { _, err := c.UserAdd(ctx, "reader", "readpw"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "reader", "read"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

"""Strict tenants and their quotas, over the client and over HTTP."""

import json
import time

from . import scenario
from .objects import KB, MB, config

TENANTS = {"tenant-a": "10MB", "tenant-b": "20MB"}
OFF = dict(tenant_eviction_high_watermark_ratio=0)  # no pass of its own clock while admission is looked at


def policy(run, tenants=None, text=None):
    """Writes a policy file and gives the flags of a strict master that reads it."""
    path = run.folder / "policy.yaml"
    if text is None:
        text = "# kept by the operator\nversion: 1\ntenants:\n"
        text += "".join(f"  - name: {name}\n    quota: {quota}\n" for name, quota in (tenants or TENANTS).items())
    path.write_text(text)
    return path, dict(enable_multi_tenants="true", tenant_quota_connector_type="file", tenant_quota_connector_uri=path)


def snapshot(master, tenant="tenant-a", field="charged_bytes"):
    """One number of a tenant's snapshot."""
    status, body = master.http("GET", f"/api/v1/tenant_quotas?tenant_id={tenant}")
    return json.loads(body)["data"][field] if status == 200 else [status, body]


@scenario
def names(run):
    """Who may write: registered, unregistered, default, empty and impossible tenants."""
    _, flags = policy(run)
    master = run.master(default_kv_lease_ttl=300, **flags)
    host = run.client("A", master, tenant="tenant-a")
    value = run.content("v", KB)
    for label, tenant in (("unregistered", "nobody"), ("default", "default"), ("empty", ""), ("underscore", "_bad"), ("control", "a\nb"), ("spaces", "tenant b"), ("unicode", "арендатор")):
        one = run.client(f"B-{label}", master, tenant=tenant, segment=0)
        run.note(f"{label} writes", [one.opened, one.put("k", value), one.put_batch(["x", "y"], [value] * 2), one.upsert("k", value), one.upsert_batch(["x"], [value])])
        run.note(f"{label} reads", [one.is_exist("k"), one.batch_is_exist(["k", "x"]), one.get("k"), one.get_size("k"), one.get_batch(["k"])])
        run.note(f"{label} removes", [one.remove("k"), one.batch_remove(["k", "x"]), one.remove_by_regex("."), one.remove_all(), one.remove_all(True)])
        run.note(f"{label} asks wrongly", [one.put("", value), one.put("k", value, config(replica_num=0)), one.remove_by_regex("[")])
    run.note("registered", [host.put("k", value), host.get("k"), snapshot(master)])


@scenario
def isolation(run):
    """One key in two tenants; removal stays inside a tenant."""
    _, flags = policy(run)
    master = run.master(default_kv_lease_ttl=300, **flags)
    a, b = run.client("A", master, tenant="tenant-a"), run.client("B", master, tenant="tenant-b")
    second = run.client("B2", master, tenant="tenant-a", segment=0)
    one, two = run.content("one", 10 * KB), run.content("two", 20 * KB)
    run.note("put", [a.put("k", one), b.is_exist("k"), b.put("k", two), a.put("only a", one)])
    run.note("get", [a.get("k"), b.get("k"), second.get("k"), b.get("only a"), a.get_size("k"), b.get_size("k")])
    run.note("charged", [snapshot(master), snapshot(master, "tenant-b")])
    run.note("upsert", [second.upsert("k", two), a.get("k"), b.get("k"), snapshot(master)])
    run.note("replicas are charged", [a.put("r", one, config(replica_num=2)), snapshot(master)])
    time.sleep(0.5)
    run.note("regex", [b.remove_by_regex("only"), a.is_exist("only a")])
    run.note("all", [b.remove_all(True), a.get("k"), b.is_exist("k"), snapshot(master), snapshot(master, "tenant-b")])
    run.note("the rest", [second.remove_all(True), a.is_exist("k"), snapshot(master)])
    run.note("loose master ignores tenants", loose(run))


def loose(run):
    """Tenants without --enable_multi_tenants: one key space."""
    master = run.master()
    a, b = run.client("A3", master, tenant="tenant-a"), run.client("B3", master, tenant="_bad")
    return [a.put("k", run.content("one", KB)), b.get("k"), b.put("k", run.content("two", KB)), b.is_exist("k"), a.get("k"), b.remove("k", True), master.http("GET", "/api/v1/tenant_quotas")]


def over(run, **extra):
    """Streams pages through a quota and notes what is refused and what is left."""
    _, flags = policy(run)
    master = run.master(default_kv_lease_ttl=20000, only_14=OFF, **flags, **extra)
    a, b = run.client("A", master, tenant="tenant-a"), run.client("B", master, tenant="tenant-b")
    page, keys = run.content("page", MB), [f"k{i}" for i in range(14)]
    run.note("another tenant's", [b.put(f"k{i}", page) for i in range(3)])
    run.note("up to the quota", [[a.put(key, page) for key in keys[:10]], snapshot(master)])
    run.note("over the quota", [[a.put(key, page) for key in keys[10:]], snapshot(master)])
    there = a.batch_is_exist(keys)
    run.note("left", [key for key, seen in zip(keys, there) if seen == 1])
    run.note("all leased", [a.put("late", page), a.is_exist("late"), sum(a.batch_is_exist(keys)), snapshot(master)])
    run.note("larger than the quota", [a.put("huge", run.content("huge", 11 * MB)), snapshot(master), sum(a.batch_is_exist(keys))])
    held = next(key for key, seen in zip(keys, there) if seen == 1)
    run.note("outgrown while all are leased", [a.upsert(held, run.content("big", 3 * MB)), a.get_size(held), snapshot(master)])
    run.note("the other tenant lost nothing", [b.batch_is_exist([f"k{i}" for i in range(3)]), snapshot(master, "tenant-b")])
    run.note("removal makes room", [a.remove_all(True) > 0, snapshot(master), a.put("k", page), a.get("k"), snapshot(master)])


@scenario
def quota(run):
    """Over quota with the defaults of each master."""
    over(run)


@scenario(only_14=True)
def quota_reject(run):
    """Over quota as 0.3.14 does it, which this master does with --tenant_quota_exceeded=reject."""
    over(run, only_ours=dict(tenant_quota_exceeded="reject"))


@scenario
def exceeded_untouched(run):
    """A write that can never fit, over objects that could all go."""
    _, flags = policy(run)
    master = run.master(only_14=OFF, **flags)
    a = run.client("A", master, tenant="tenant-a")
    page, keys = run.content("page", MB), [f"k{i}" for i in range(8)]
    run.note("filled", [a.put(key, page) for key in keys])
    run.note("can never fit", [a.put("huge", run.content("huge", 11 * MB)), snapshot(master)])
    run.note("left", a.batch_is_exist(keys))


@scenario
def outgrown_quota(run):
    """An upsert of another size against the quota."""
    _, flags = policy(run, {"tenant-a": "1MB"})
    master = run.master(only_14=OFF, default_kv_lease_ttl=20000, **flags)
    a = run.client("A", master, tenant="tenant-a")
    k500, k600, m2 = run.content("k500", 500_000), run.content("k600", 600_000), run.content("m2", 2_000_000)
    run.note("put", [a.put("k", k500), snapshot(master)])
    run.note("same size is free", [a.upsert("k", run.content("again", 500_000)), snapshot(master)])
    run.note("fits once the old one is gone", [a.upsert("k", k600), a.get("k"), snapshot(master)])
    run.note("never fits", [a.upsert("k", m2), a.is_exist("k"), snapshot(master)])
    run.note("two copies asked, one made", [a.remove_all(True) >= 0, a.put("r", k500, config(replica_num=2)), a.put("r2", k600, config(replica_num=2)), snapshot(master)])


@scenario(only_14=True)
def tenant_watermark(run):
    """The pass that keeps each tenant below its watermark."""
    _, flags = policy(run)
    master = run.master(default_kv_lease_ttl=300, **flags)
    a, b = run.client("A", master, tenant="tenant-a"), run.client("B", master, tenant="tenant-b")
    page, keys = run.content("page", MB), [f"k{i}" for i in range(10)]
    run.note("put", [[a.put(key, page) for key in keys[:9]], [b.put(key, page) for key in keys]])
    time.sleep(1.5)
    run.note("at the watermark", [snapshot(master), snapshot(master, "tenant-b")])
    run.note("over it", a.put("k9", page))
    run.note("after a pass", run.until(lambda: snapshot(master), 8 * MB, seconds=4))
    run.note("left", [a.batch_is_exist(keys), sum(b.batch_is_exist(keys))])


ADMIN = [
    ("GET", "", None),
    ("GET", "?tenant_id=tenant-a", None),
    ("GET", "?tenant_id=nobody", None),
    ("GET", "?tenant_id=_bad", None),
    ("PUT", "", '{"requested_quota_bytes":5}'),
    ("PUT", "?tenant_id=_bad", '{"requested_quota_bytes":5}'),
    ("PUT", "?tenant_id=tenant-c", ""),
    ("PUT", "?tenant_id=tenant-c", "abc"),
    ("PUT", "?tenant_id=tenant-c", "{}"),
    ("PUT", "?tenant_id=tenant-c", '{"requested_quota_bytes":0}'),
    ("PUT", "?tenant_id=tenant-c", '{"requested_quota_bytes":-1}'),
    ("PUT", "?tenant_id=tenant-c", '{"requested_quota_bytes":"5GB"}'),
    ("PUT", "?tenant_id=tenant-c", '{"requested_quota_bytes":9223372036854775808}'),
    ("PUT", "?tenant_id=tenant%20c", '{"requested_quota_bytes":2097152,"other":1}'),
    ("PUT", "?tenant_id=tenant-c", '{"requested_quota_bytes":2097152}'),
    ("DELETE", "?tenant_id=nobody", None),
    ("DELETE", "", None),
    ("POST", "?tenant_id=tenant-c", None),
    ("GET", "", None),
]


@scenario
def admin(run):
    """The quota API: bodies, codes, and policies that change under a running client."""
    path, flags = policy(run)
    master = run.master(default_kv_lease_ttl=300, only_14=OFF, **flags)
    for number, (method, query, body) in enumerate(ADMIN):
        run.note(f"{number} {method} {query} {body}", master.http(method, "/api/v1/tenant_quotas" + query, body))
    run.note("file after PUT", path.read_text())
    a = run.client("A", master, tenant="tenant-c", segment=16 * MB)
    page = run.content("page", MB)
    run.note("shares of 16 MiB", [snapshot(master, name, "effective_quota_bytes") for name in ("tenant-a", "tenant-b", "tenant-c", "tenant%20c")])
    run.client("B", master, tenant="tenant-b")
    run.note("shares of 80 MiB", [snapshot(master, name, "effective_quota_bytes") for name in ("tenant-a", "tenant-b", "tenant-c")])
    run.note("a new tenant writes", [a.put("k", page), snapshot(master, "tenant-c")])
    run.note("delete while it owns", master.http("DELETE", "/api/v1/tenant_quotas?tenant_id=tenant-c"))
    run.note("still writable", [a.put("k2", run.content("small", KB)), a.get("k")])
    run.note("smaller than its use", master.http("PUT", "/api/v1/tenant_quotas?tenant_id=tenant-c", '{"requested_quota_bytes":1000}'))
    run.note("refused then", a.put("k3", page))
    run.note("delete when empty", [a.remove_all(True) >= 0, master.http("DELETE", "/api/v1/tenant_quotas?tenant_id=tenant-c"), a.put("k", page)])
    run.note("gone", master.http("GET", "/api/v1/tenant_quotas?tenant_id=tenant-c"))
    run.note("remove_all over HTTP", master.http("POST", "/api/v1/remove_all"))
    quiet = run.master()
    run.note("without tenants", [quiet.http(method, "/api/v1/tenant_quotas" + query, body) for method, query, body in ADMIN[:8] + ADMIN[14:16]])


@scenario
def edited(run):
    """The operator edits the policy file under a running master."""
    path, flags = policy(run)
    master = run.master(**flags)
    a = run.client("A", master, tenant="tenant-new")
    value = run.content("v", KB)
    run.note("before", [a.put("k", value), snapshot(master, field="requested_quota_bytes")])
    path.write_text(path.read_text().replace("10MB", "12MB") + "  - name: tenant-new\n    quota: 1MB\n")
    run.until(lambda: snapshot(master, field="requested_quota_bytes"), 12 * MB, seconds=2)
    run.note("after", [a.put("k", value), snapshot(master, field="requested_quota_bytes")])


@scenario
def broken_policy(run):
    """Start with a policy that cannot be read."""
    for number, text in enumerate(("", "version: 2\ntenants: []\n", "version: 1\ntenants:\n  - name: a\n    quota: 5GiB\n", "version: 1\ntenants:\n  - name: _a\n    quota: 5\n")):
        _, flags = policy(run, text=text)
        run.note(f"exit status {number}", run.master(start=False, **flags).exit_status())
    run.note("exit status of an unknown flag", run.master(start=False, no_such_flag=1).exit_status())
    run.note("exit status of a bad value", run.master(start=False, eviction_ratio=2).exit_status())

"""Copies and moves of objects between clients, and drains of whole segments."""

import json
import re
import time

from . import scenario
from .memory import where
from .objects import KB, config
from .tenants import OFF, policy, snapshot


def hosts(run, master, names="ABC"):
    """Clients with a segment each."""
    return [run.client(name, master) for name in names]


@scenario
def copies(run):
    """Copy tasks that clients carry out."""
    a, b, c = hosts(run, run.master(default_kv_lease_ttl=300))
    value, on_a, note = run.content("v", 100 * KB), config(preferred_segment=a.hostname), run.note
    note("put", [a.put("k", value, on_a), a.put("l", value, on_a)])
    note("to one", [b.task("copy", "k", [b.hostname]), where(c, "k"), b.get("k")])
    note("to two, one of which has it", [c.task("copy", "k", [b.hostname, c.hostname]), where(c, "k"), c.get("k")])
    note("to all, which have it", [a.task("copy", "k", [a.hostname, b.hostname, c.hostname]), where(c, "k")])
    note("unknown key", a.task("copy", "none", [b.hostname]))
    note("unknown segment", [a.task("copy", "l", ["nowhere:1"]), a.task("copy", "l", [b.hostname, "nowhere:1"]), where(c, "l")])
    note("no segment", a.task("copy", "l", []))
    note("empty key", a.task("copy", "", [b.hostname]))
    note("leased", [a.get("l"), a.task("copy", "l", [c.hostname]), where(b, "l")])
    note("removed", [a.remove("k", True), b.remove("l", True), b.is_exist("k"), where(c, "k")])
    note("unknown task", a.query_task([1, 2])[1])


@scenario
def moves(run):
    """Move tasks that clients carry out."""
    a, b, c = hosts(run, run.master(default_kv_lease_ttl=300))
    value, on_a, note = run.content("v", 100 * KB), config(preferred_segment=a.hostname), run.note
    note("put", [a.put("k", value, on_a), a.put("l", value, on_a), a.put("two", value, config(replica_num=2, preferred_segments=[a.hostname, b.hostname]))])
    note("moved", [b.task("move", "k", a.hostname, b.hostname), where(c, "k"), c.get("k")])
    note("moved on", [c.task("move", "k", b.hostname, c.hostname), where(a, "k"), a.get("k")])
    note("from where it is not", [a.task("move", "k", a.hostname, b.hostname), where(a, "k")])
    note("onto itself", [a.task("move", "k", c.hostname, c.hostname), where(a, "k")])
    note("to where it is already", [a.task("move", "two", a.hostname, b.hostname), where(c, "two"), c.get("two")])
    note("unknown key", a.task("move", "none", a.hostname, b.hostname))
    note("unknown segments", [a.task("move", "l", "nowhere:1", b.hostname), a.task("move", "l", a.hostname, "nowhere:1"), where(c, "l")])
    note("leased", [a.get("l"), a.task("move", "l", a.hostname, c.hostname), where(b, "l"), b.get("l")])
    note("overwritten", [a.upsert("k", run.content("w", 100 * KB)), b.get("k"), where(a, "k"), b.upsert("k", run.content("x", 50 * KB), on_a), where(a, "k")])
    note("removed", [a.remove("k", True), where(c, "k")])


@scenario
def charged_copies(run):
    """What copies and moves cost a tenant."""
    _, flags = policy(run, {"tenant-a": "1MB", "tenant-b": "1MB"})
    master = run.master(default_kv_lease_ttl=300, only_14=OFF, **flags)
    a, b = run.client("A", master, tenant="tenant-a"), run.client("B", master, tenant="tenant-b")
    on_a, note = config(preferred_segment=a.hostname), run.note
    note("put", [a.put("k", run.content("v", 400 * KB), on_a), snapshot(master)])
    note("copied", [a.task("copy", "k", [b.hostname]), where(a, "k"), snapshot(master), snapshot(master, "tenant-b")])
    note("another tenant's", [b.task("copy", "k", [b.hostname]), b.task("move", "k", a.hostname, b.hostname)])
    note("moved", [a.put("l", run.content("w", 100 * KB), on_a), snapshot(master), a.task("move", "l", a.hostname, b.hostname), where(a, "l"), snapshot(master)])
    note("over the quota", [a.put("m", run.content("m", 120 * KB), on_a), snapshot(master), a.task("copy", "m", [b.hostname]), where(a, "m"), snapshot(master)])
    note("removed", [a.remove("k", True), snapshot(master), a.remove_all(True) >= 0, snapshot(master)])


def ask(master, method, path, body=None):
    """Status and body of an admin request, without what differs from run to run."""
    status, text = master.http(method, path, body if body is None or isinstance(body, str) else json.dumps(body))
    text = re.sub(r"\d+-\d+", "JOB", text)
    return [status, re.sub(r'_ms_epoch":\d+', '_ms_epoch":T', text)]


def created(master, body):
    """A new drain job's id."""
    return json.loads(master.http("POST", "/api/v1/drain_jobs", json.dumps(body))[1]).get("job_id")


def job(master, name, *fields):
    """Fields of a drain job."""
    found = json.loads(master.http("GET", f"/api/v1/drain_jobs/query?job_id={name}")[1])
    return [found.get(field) for field in fields]


def status(master, client):
    """The status of a client's segment."""
    return json.loads(master.http("GET", f"/api/v1/segments/status?segment={client.hostname}")[1]).get("status_name")


@scenario
def drain_requests(run):
    """Drain jobs that are refused."""
    master = run.master()
    a, b = hosts(run, master, "AB")
    here, there = a.hostname, b.hostname
    bodies = {
        "nothing": None,
        "no JSON": "drain",
        "no object": [],
        "empty": {},
        "no segments": {"segments": []},
        "no concurrency": {"segments": [here], "max_concurrency": 0},
        "negative concurrency": {"segments": [here], "max_concurrency": -1},
        "segments no list": {"segments": here},
        "twice": {"segments": [here, here]},
        "unknown": {"segments": ["nowhere:1"]},
        "known and unknown": {"segments": [here, "nowhere:1"]},
        "onto itself": {"segments": [here], "target_segments": [here]},
        "onto an unknown one": {"segments": [here], "target_segments": ["nowhere:1"]},
    }
    for label, body in bodies.items():
        answer = ask(master, "POST", "/api/v1/drain_jobs", body)
        run.note(label, [answer[0], answer[1].replace(here, "A").replace(there, "B"), status(master, a)])
    for query in ("", "?job_id=", "?job_id=abc", "?job_id=1-2"):
        run.note(f"query {query}", ask(master, "GET", "/api/v1/drain_jobs/query" + query))
        run.note(f"cancel {query}", ask(master, "POST", "/api/v1/drain_jobs/cancel" + query))
    run.note("status", [ask(master, "GET", "/api/v1/segments/status" + query) for query in ("", "?segment=nowhere:1")])


@scenario
def drains(run):
    """A drain from its start to its end, and what the segment is good for meanwhile."""
    master = run.master(default_kv_lease_ttl=300)
    a, b = hosts(run, master, "AB")
    value, note = run.content("v", 100 * KB), run.note
    on_a = config(preferred_segment=a.hostname)
    note("put", [a.put(f"k{i}", value, on_a) for i in range(6)] + [a.put("pinned", value, config(preferred_segment=a.hostname, with_hard_pin=True))])
    one = created(master, {"segments": [a.hostname], "target_segments": [b.hostname], "max_concurrency": 2})
    note("draining", [status(master, a), status(master, b), master.http("GET", "/get_all_segments")[1].split() == [b.hostname]])
    note("again", ask(master, "POST", "/api/v1/drain_jobs", {"segments": [a.hostname]}))
    note("put meanwhile", [a.put("late", value, on_a), where(b, "late"), b.get("k0"), a.get("pinned")])
    waiting = run.until(lambda: job(master, one, "succeeded_units", "blocked_units", "active_units"), [6, 1, 0], seconds=30)
    note("all but the pinned one", [waiting, job(master, one, "status_name", "failed_units", "migrated_bytes", "message")])
    note("where", [where(b, f"k{i}") for i in range(6)] + [where(b, "pinned")])
    note("unpinned", [a.remove("pinned", True), run.until(lambda: job(master, one, "status_name"), ["SUCCEEDED"], seconds=10), status(master, a)])
    answer = ask(master, "GET", f"/api/v1/drain_jobs/query?job_id={one}")
    blocked = re.sub(r'blocked_units":\d+', 'blocked_units":N', answer[1])  # whether the last round still met the pinned one is chance
    note("job", [answer[0], blocked.replace(a.hostname, "A")])
    note("cancel of a finished one", ask(master, "POST", f"/api/v1/drain_jobs/cancel?job_id={one}"))
    note("read", [b.get(f"k{i}") for i in range(6)] + [b.get("late")])
    note("put after", [a.put("after", value, on_a), where(b, "after")])
    note("closed", [a.close(), run.until(lambda: status(master, a), None, seconds=5), b.get("k0")])


@scenario
def drain_cancelled(run):
    """A drain that waits for a pinned object is cancelled; one of an empty segment ends at once."""
    master = run.master(default_kv_lease_ttl=300)
    a, b = hosts(run, master, "AB")
    value, note = run.content("v", 100 * KB), run.note
    note("put", a.put("pinned", value, config(preferred_segment=a.hostname, with_hard_pin=True)))
    one = created(master, {"segments": [a.hostname]})
    note("waiting", run.until(lambda: job(master, one, "status_name", "blocked_units", "active_units"), ["RUNNING", 1, 0], seconds=5))
    note("cancelled", [ask(master, "POST", f"/api/v1/drain_jobs/cancel?job_id={one}"), job(master, one, "status_name", "message"), status(master, a)])
    note("writable again", [a.put("k", value, config(preferred_segment=a.hostname)), where(b, "k")])
    empty = created(master, {"segments": [b.hostname]})
    note("empty", [run.until(lambda: job(master, empty, "status_name"), ["SUCCEEDED"], seconds=5), job(master, empty, "succeeded_units", "message"), status(master, b)])
    time.sleep(0.1)
    note("no segment left to drain to", [ask(master, "POST", "/api/v1/drain_jobs", {"segments": [a.hostname], "target_segments": [b.hostname]}), status(master, a)])


@scenario
def drain_redundant(run):
    """A drain of an object that every target has already."""
    master = run.master(default_kv_lease_ttl=300)
    a, b = hosts(run, master, "AB")
    value, note = run.content("v", 100 * KB), run.note
    note("put", [a.put("two", value, config(replica_num=2)), where(b, "two"), a.put("one", value, config(preferred_segment=a.hostname))])
    one = created(master, {"segments": [a.hostname]})
    note("the other is moved", run.until(lambda: job(master, one, "succeeded_units", "active_units")[0] >= 1 and where(b, "one"), ["B COMPLETE"], seconds=10))
    time.sleep(1.2)  # two more rounds of the drain
    note("end", [job(master, one, "status_name", "blocked_units", "failed_units"), status(master, a)])
    note("where", [where(b, "two"), b.get("two"), b.get("one")])

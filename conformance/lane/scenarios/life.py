"""Clients and masters that stop, stall, die and come back."""

import signal
import time

from . import scenario
from .memory import where
from .objects import KB, config

def lifetimes(run, active=2, suspicion=4):
    """Flags for a short client life; 0.3.13 has no grace period."""
    return dict(client_active_ttl_sec=active, client_suspicion_ttl_sec=suspicion) if run.knows_14 else dict(client_ttl=active)


@scenario
def killed(run):
    """A client is killed with -9; what it held vanishes after its time, the other goes on."""
    master = run.master(default_kv_lease_ttl=300, **lifetimes(run, 2, 2))
    a, b = run.pair(master)
    value = run.content("v", 10 * KB)
    run.note("put", [a.put("on a", value, config(preferred_segment=a.hostname)), b.put("on b", value, config(preferred_segment=b.hostname)), a.put("both", value, config(replica_num=2))])
    run.note("before", [b.get("on a"), where(b, "both")])
    a.kill()
    run.note("gone after its time", run.until(lambda: b.get_size("on a"), -704, seconds=15))
    run.note("after", [b.is_exist("on a"), b.get("on a"), b.get("on b"), b.get("both"), where(b, "both")])
    run.note("write again", [b.put("on a", value), b.get("on a"), where(b, "on a")])
    a2 = run.client("A2", master)
    run.note("a new client", [a2.opened, a2.get("on a"), a2.put("new", value), b.get("new")])


def landing(a, b, value):
    """Writes one object that prefers a's memory, tells where it went, and removes it."""
    a.put("trial", value, config(preferred_segment=a.hostname))
    told = where(b, "trial")
    b.remove("trial", True)
    return told


@scenario
def stalled(run):
    """A client stops answering for longer than its active time and goes on."""
    master = run.master(default_kv_lease_ttl=300, **lifetimes(run, 2, 30))
    a, b = run.pair(master)
    value = run.content("v", 10 * KB)
    run.note(
        "put",
        [a.put(key, value, config(preferred_segment=a.hostname)) for key in ("k", "same", "other", "gone", "in regex")]
        + [b.put("both", value, config(replica_num=2)), b.put("on b", value, config(preferred_segment=b.hostname))],
    )
    a.pause()
    run.note("unreadable", run.until(lambda: b.is_exist("k"), 0, seconds=12))
    time.sleep(0.3)
    run.note("size", b.get_size("k"))
    run.note("reads", [b.get("k"), b.batch_is_exist(["k", "both", "on b"]), where(b, "both")])
    if b.probes:
        run.note("probes", [b.probe_key("k"), b.batch_probe_key(["k", "both"])])
    run.note("listed", master.keys())
    run.note("segments", len(master.http("GET", "/get_all_segments")[1].split()))
    run.note("put of a held key", b.put("k", run.content("w", 10 * KB)))
    run.note("upsert of the same size", b.upsert("same", run.content("w", 10 * KB)))
    run.note("upsert of another size", [b.upsert("other", run.content("w", 20 * KB)), where(b, "other")])
    run.note("remove", [b.remove("gone"), b.remove_by_regex("^in regex$")])
    run.note("new writes go elsewhere", [b.put("new", value, config(preferred_segment=a.hostname)), where(b, "new"), b.put("new2", value, config(replica_num=2)), where(b, "new2")])
    a.resume()
    run.note("back", run.until(lambda: landing(a, b, value), ["A COMPLETE"], seconds=8))
    run.note("back reads", [b.get("k"), b.get("same"), b.get("other"), b.is_exist("gone"), where(b, "both"), a.get("on b")])


@scenario(slow=True, only_14=True)
def offline(run):
    """A client stalls beyond its grace period and comes back empty."""
    a, b = run.pair(run.master(default_kv_lease_ttl=300, **lifetimes(run, 1, 2)))
    value = run.content("v", 10 * KB)
    run.note("put", [a.put("k", value, config(preferred_segment=a.hostname)), b.get("k")])
    a.pause()
    run.note("suspected", run.until(lambda: b.get_size("k"), -703, seconds=6, pause=0.03))
    run.note("offline", run.until(lambda: b.get_size("k"), -704, seconds=8))
    a.resume()
    run.note("remounted", run.until(lambda: landing(a, b, value), ["A COMPLETE"], seconds=15, pause=0.3))
    run.note("after", [b.is_exist("k"), b.put("k", value), a.get("k")])


@scenario
def restarted(run):
    """The master dies and comes back on the same ports; clients remount by themselves."""
    master = run.master(default_kv_lease_ttl=300)
    a, b = run.pair(master)
    value = run.content("v", 10 * KB)
    ways = ((signal.SIGKILL, "killed"), (signal.SIGTERM, "asked to end"))
    for how, name in ways[: 1 if run.quick else 2]:
        run.note(f"{name}: before", [a.put("k", value), b.get("k"), a.health_check()])
        master.stop(how)
        run.note(f"{name}: without a master", [a.is_exist("k") < 0, b.put("x", value) < 0, a.get("k")])
        master.start()
        run.note(f"{name}: remounted", run.until(lambda: sorted(segments(master)), sorted([a.hostname, b.hostname]), seconds=30) == sorted([a.hostname, b.hostname]))
        run.note(f"{name}: empty", [a.is_exist("k"), b.get("k"), b.get_size("k"), master.keys()])
        run.note(
            f"{name}: serves again",
            [a.put("on a", value, config(preferred_segment=a.hostname)), b.put("on b", value, config(preferred_segment=b.hostname)), b.get("on a"), a.get("on b"), where(a, "on a"), where(b, "on b")],
        )
        run.note(f"{name}: cleared", [b.remove_all(True), a.health_check(), b.health_check()])


def segments(master):
    """Names of the mounted segments; none while the master cannot say."""
    try:
        return master.http("GET", "/get_all_segments")[1].split()
    except OSError:
        return []


@scenario
def joined(run):
    """A client that comes later reads what is there; one that leaves takes its memory along."""
    master = run.master(default_kv_lease_ttl=300)
    a = run.client("A", master)
    value = run.content("v", 10 * KB)
    run.note("alone", [a.put("k", value), where(a, "k"), len(segments(master))])
    b = run.client("B", master)
    run.note("joined", [b.get("k"), b.put("k2", value, config(preferred_segment=b.hostname)), a.get("k2"), len(segments(master))])
    run.note("left", [a.close(), run.until(lambda: b.get_size("k"), -704, seconds=5), b.get("k2"), len(segments(master))])
    a2 = run.client("A2", master)
    run.note("came back", [a2.opened, a2.get("k2"), a2.put("k", value), b.get("k"), len(segments(master))])

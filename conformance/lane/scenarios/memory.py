"""Where objects lie and how long they stay: replicas, preferences, pins and eviction."""

import json
import time

from . import scenario
from .objects import KB, MB, config


def where(client, key):
    """The clients whose memory holds a key, sorted."""
    replicas = client.get_replica_desc(key)
    return sorted(f"{one['endpoint']} {one['status']}" for one in replicas) if isinstance(replicas, list) else replicas


@scenario
def replicas(run):
    """Two copies on two clients; one client leaves."""
    a, b = run.pair(run.master(default_kv_lease_ttl=1500))
    value, note = run.content("v", 100 * KB), run.note
    note("two copies", [a.put("two", value, config(replica_num=2)), where(b, "two")])
    note("three asked", [a.put("three", value, config(replica_num=3)), where(b, "three")])
    note("none asked", a.put("zero", value, config(replica_num=0)))
    note("preferred", [a.put("on a", value, config(preferred_segment=a.hostname)), a.put("on b", value, config(preferred_segment=b.hostname)), where(a, "on a"), where(a, "on b")])
    note("preferred list", [b.put("on a2", value, config(preferred_segments=[a.hostname, b.hostname])), where(a, "on a2")])
    note("preferred unknown", a.put("anywhere", value, config(preferred_segment="nowhere:1")))
    note("read", [b.get(key) for key in ("two", "three", "on a", "on b")])
    on_b = config(preferred_segment=b.hostname)
    note("upsert", [a.put("calm", value, config(replica_num=2)), b.upsert("calm", run.content("w", 100 * KB), on_b), where(a, "calm"), a.get("calm")])
    note("upsert of a leased one", [b.get("two"), b.upsert("two", run.content("w", 100 * KB), on_b), where(a, "two"), a.get("two")])
    note("upsert of another size", [b.upsert("three", run.content("w", 50 * KB), config(replica_num=2)), where(a, "three"), a.get("three")])
    note("a leaves", a.close())
    run.until(lambda: b.get_size("on a"), -704, seconds=5)
    note("after a left", [b.get_size("on a"), b.get("two"), where(b, "two"), b.get("on b"), b.is_exist("on a2")])
    note("write after a left", [b.put("late", value, config(replica_num=2)), where(b, "late")])


@scenario
def segmentless(run):
    """A client that brings no memory reads and writes that of others."""
    master = run.master()
    reader = run.client("reader", master, segment=0)
    value = run.content("v", 10 * KB)
    run.note("no memory at all", [reader.opened, reader.put("k", value), reader.is_exist("k")])
    a = run.client("A", master)
    run.note("another's memory", [a.opened, reader.put("k", value), a.get("k"), reader.get("k"), where(reader, "k")])
    run.note("segments", len(master.http("GET", "/get_all_segments")[1].split()))


def crossing(run, master_flags, plan, keys):
    """Fills 32 MiB of memory by plan until the watermark (half) is crossed, waits, and tells the errors met and the keys left."""
    a = run.client("A", run.master(eviction_high_watermark_ratio=0.5, **master_flags), segment=32 * MB)
    value = run.content("page", MB)
    answers = [step(a, value) for step in plan]
    time.sleep(0.7)
    there = a.batch_is_exist(keys)
    return [[code for code in answers if code is not None and code < 0], [key for key, seen in zip(keys, there) if seen == 1]]


def put(key, **settings):
    """A step that writes one page."""
    return lambda client, value: client.put(key, value, config(**settings))


def pages(start, stop, **settings):
    """Steps that write pages k<start>.. k<stop-1>."""
    return [put(f"k{i}", **settings) for i in range(start, stop)]


def pause(seconds):
    """A step that waits."""
    return lambda client, value: time.sleep(seconds)


KEYS = [f"k{i}" for i in range(17)]


@scenario
def eviction(run):
    """Which objects go when the memory's watermark is crossed."""
    run.note("oldest first", crossing(run, dict(eviction_ratio=0.25), pages(0, 17), KEYS))
    run.note("small ratio", crossing(run, dict(eviction_ratio=0.05), pages(0, 17), KEYS))
    read = [lambda client, value: client.is_exist("k0"), lambda client, value: client.get_size("k1")]
    run.note("leased ones stay", crossing(run, dict(eviction_ratio=0.25, default_kv_lease_ttl=5000), pages(0, 5) + read + pages(5, 17), KEYS))
    late = crossing(run, dict(eviction_ratio=0.25, default_kv_lease_ttl=300), pages(0, 5) + read + [pause(0.5)] + pages(5, 17), KEYS)
    run.note("a lease that ended ranks by its end", late)


@scenario
def pinned(run):
    """Hard and soft pins under eviction."""
    soft = dict(soft_pin_action="ENABLE")
    run.note("hard pins stay", crossing(run, dict(eviction_ratio=0.25), pages(0, 1, with_hard_pin=True) + pages(1, 17), KEYS))
    run.note("soft pins go last", crossing(run, dict(eviction_ratio=0.25), pages(0, 3, **soft) + pages(3, 17), KEYS))
    if run.quick:
        return
    run.note("all soft pinned", crossing(run, dict(eviction_ratio=0.25), pages(0, 17, **soft), KEYS))
    run.note("all soft pinned and kept", crossing(run, dict(eviction_ratio=0.25, allow_evict_soft_pinned_objects="false"), pages(0, 17, **soft), KEYS))
    run.note("all hard pinned", crossing(run, dict(eviction_ratio=0.25), pages(0, 17, with_hard_pin=True), KEYS))
    ended = pages(0, 3, soft_pin_action="ENABLE", soft_pin_ttl_ms=200) + [pause(0.5)] + pages(3, 17)
    run.note("a soft pin that ended", crossing(run, dict(eviction_ratio=0.25), ended, KEYS))


@scenario
def pin_requests(run):
    """Pin requests that are refused, and what pins do not protect from."""
    a = run.client("A", run.master())
    value = run.content("v", KB)
    asked = [
        dict(soft_pin_action="PRESERVE", soft_pin_ttl_ms=5),
        dict(soft_pin_action="DISABLE", soft_pin_ttl_ms=5),
        dict(soft_pin_action="ENABLE", soft_pin_ttl_ms=10**12),
        dict(soft_pin_action="ENABLE", soft_pin_ttl_ms=1000),
        dict(soft_pin_action="DISABLE"),
        dict(soft_pin_action="PRESERVE"),
    ]
    run.note("requests", [a.put(f"r{i}", value, config(**settings)) for i, settings in enumerate(asked)])
    run.note("pins do not block removal", [a.put("p", value, config(with_hard_pin=True, soft_pin_action="ENABLE")), a.remove("p"), a.remove_all()])


@scenario(only_14=True)
def pin_routes(run):
    """Soft pins that an operator sets and takes away over HTTP."""
    master = run.master(eviction_high_watermark_ratio=0.5, eviction_ratio=0.25)
    a = run.client("A", master, segment=32 * MB)
    value = run.content("page", MB)

    def ask(route, body):
        return master.http("POST", f"/api/v1/{route}", body if isinstance(body, str) or body is None else json.dumps(body))

    run.note("put", [a.put(f"k{i}", value) for i in range(5)])
    run.note("pin", ask("soft_pin", {"keys": ["k0", "k1", "none", "k0"], "ttl_ms": 60000}))
    run.note("pin without a time", ask("soft_pin", {"keys": ["k2"]}))
    run.note("unpin", ask("soft_unpin", {"keys": ["k1", "none"]}))
    run.note("put more", [[a.put(f"k{i}", value) for i in range(5, 17)], time.sleep(0.7), [key for key, seen in zip(KEYS, a.batch_is_exist(KEYS)) if seen == 1]])
    wrong = [None, "x", {}, [], {"keys": []}, {"keys": "k0"}, {"keys": [1]}, {"keys": ["k16"], "ttl_ms": 0}, {"keys": ["k16"], "ttl_ms": -1}, {"keys": ["k16"], "ttl_ms": "5"}]
    wrong += [{"keys": ["k16"], "ttl_ms": 10**12}, {"keys": ["k16"] * 4097, "ttl_ms": 5}]
    wrong += [{"keys": ["k16"], "tenant_id": name, "ttl_ms": 5} for name in ("nobody", "", 5, "_bad")] + [{"keys": [""], "ttl_ms": 5}, {"keys": ["k16"], "more": 1, "ttl_ms": 5}]
    for body in wrong:
        label = json.dumps(body)[:60]
        run.note(f"pin {label}", ask("soft_pin", body))
        run.note(f"unpin {label}", ask("soft_unpin", {name: part for name, part in body.items() if name != "ttl_ms"} if isinstance(body, dict) else body))


@scenario
def group_eviction(run):
    """A group goes whole or not at all."""
    oldest = pages(0, 4, group_ids=["g"]) + [pause(0.4)] + pages(4, 17)
    run.note("whole", crossing(run, dict(eviction_ratio=0.1), oldest, KEYS))
    leased = pages(0, 4, group_ids=["g"]) + [lambda client, value: client.is_exist("k2"), pause(0.4)] + pages(4, 17)
    run.note("one member leased", crossing(run, dict(eviction_ratio=0.1, default_kv_lease_ttl=5000), leased, KEYS))


@scenario
def full(run):
    """Writes into memory that is full."""
    a = run.client("A", run.master(default_kv_lease_ttl=30000), segment=16 * MB)
    value = run.content("page", MB)
    put = [a.put(f"k{i}", value, config(with_hard_pin=True)) for i in range(14)]
    run.note("filled", [put, a.batch_is_exist([f"k{i}" for i in range(14)])])
    run.note("nothing can go", [a.put("more", run.content("more", 4 * MB)), a.is_exist("more"), sum(a.batch_is_exist([f"k{i}" for i in range(14)]))])
    # The refused write has asked for an eviction. Let it find nothing: on a busy machine it may come late enough to take what follows.
    time.sleep(0.5)
    run.note("room made", [a.remove(f"k{i}", True) for i in range(4)] + [a.put("more", run.content("more", 4 * MB)), a.get("more")])
    b = run.client("A2", run.master(), segment=16 * MB)
    run.note("filled again", [b.put(f"k{i}", value) for i in range(14)])
    run.note("something can go: first try", b.put("more", run.content("more", 4 * MB)))
    run.note("something can go: later", run.until(lambda: b.put("more", run.content("more", 4 * MB)), 0, seconds=5, pause=0.02))
    run.note("something can go: read", b.get("more"))


@scenario
def oversized(run):
    """An object that no memory could ever hold."""
    a = run.client("A", run.master(), segment=16 * MB)
    keys, page = [f"k{i}" for i in range(8)], run.content("page", MB)
    run.note("filled", [a.put(key, page) for key in keys])
    run.note("put", [a.put("huge", run.content("huge", 20 * MB)), a.is_exist("huge")])
    time.sleep(0.5)
    run.note("left", a.batch_is_exist(keys))


@scenario
def outgrown(run):
    """An upsert of another size that finds no memory."""
    a = run.client("A", run.master(default_kv_lease_ttl=60000), segment=16 * MB)
    first, second = run.content("first", 4 * MB), run.content("second", 8 * MB)
    run.note("filled", [a.put(f"k{i}", first, config(with_hard_pin=True)) for i in range(3)])
    run.note("upsert", a.upsert("k0", second))
    run.note("what is left", [a.is_exist("k0"), a.get("k0"), a.get_size("k1"), a.get_size("k2")])

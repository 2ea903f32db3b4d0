"""A drain of many objects under traffic: the hosts of all of them are emptied while two tenants go on writing and reading."""

import time

from .stage import KB, MB, TENANTS, ask, ledger, quoted

SIZE = 4 * KB
# A client fetches 16 tasks once a second, so the time of a drain is the number of objects over 16 times the hosts.
HOSTS, QUICK_HOSTS = 8, 6
OBJECTS, QUICK_OBJECTS = 10_000, 504
FINISHED = ("SUCCEEDED", "FAILED", "CANCELED")


def drain(stage):
    """Fills the hosts, drains them all in one job under traffic, and compares before and after."""
    hosts, objects = (QUICK_HOSTS, QUICK_OBJECTS) if stage.quick else (HOSTS, OBJECTS)
    master = stage.master("1GB", default_kv_lease_ttl=300, only_14={"tenant_eviction_high_watermark_ratio": 0})
    sources = [stage.client(f"source-{i}", master, TENANTS[i % 2], segment=32 * MB, buffer=16 * MB) for i in range(hosts)]
    targets = [stage.client(f"target-{i}", master, TENANTS[i % 2], segment=64 * MB, buffer=16 * MB) for i in range(2)]
    traffic = [stage.client(f"traffic-{name}", master, name, segment=0, buffer=16 * MB) for name in TENANTS]
    share = objects // hosts  # a quarter of them is upserted while it moves
    quarter = share // 4
    filled = stage.together(*[lambda host=host: fill(host, share, quarter) for host in sources])
    stage.expect("all objects written", [one["codes"] for pair in filled for one in pair], [{"0": share - quarter}, {"0": quarter}] * hosts)
    before = ledger(master)
    stage.expect("charged before", sum(before.values()), hosts * share * SIZE)
    stage.say(f"{hosts * share} objects of {len(TENANTS)} tenants on {hosts} hosts, {before}")

    for client, source in zip(traffic, sources):
        client.churn(f"load-{client.name}-", SIZE, f"still-{source.name}-", share - quarter, f"changing-{source.name}-", quarter)
    job = ask(master, "POST", "/api/v1/drain_jobs", {"segments": [host.hostname for host in sources], "target_segments": [], "max_concurrency": 64 * hosts})["job_id"]
    started, told, low = time.monotonic(), 0, before
    limit = 120 if stage.quick else 900
    while True:
        state = ask(master, "GET", f"/api/v1/drain_jobs/query?job_id={job}")
        now = ledger(master)
        low = {name: min(low[name], now[name]) for name in low}
        if time.monotonic() - told > 5 or state["status_name"] in FINISHED:
            told = time.monotonic()
            stage.say(f"{state['status_name']}: {state['succeeded_units']} moved, {state['active_units']} moving, {state['blocked_units']} waiting, {state['failed_units']} failed; charged {now}")
        if state["status_name"] in FINISHED or time.monotonic() - started > limit:
            break
        time.sleep(0.25)
    took = time.monotonic() - started
    seen = [client.churned() for client in traffic]
    stage.say(f"the drain took {took:.0f} s; beside it " + "; ".join(f"{one['rounds']} rounds {one['codes']}" for one in seen))

    stage.expect("the drain succeeded", state["status_name"], "SUCCEEDED")
    # An upsert of another tenant's moment may have placed an object anew, on a target: then there is nothing to move.
    stage.expect("objects moved", hosts * share - len({key for one in seen for key in one["versions"]}) <= state["succeeded_units"] <= hosts * share, True)
    stage.expect("nothing is moving any more", [state["active_units"], state["blocked_units"]], [0, 0])
    stage.expect("the traffic went on", [one["rounds"] > 10 for one in seen], [True, True])
    stage.expect("the traffic read what was written", [one["wrong"] for one in seen], [[], []])
    stage.expect("the traffic was never refused for good", sorted({code for one in seen for code in one["codes"]}), ["put 0", "remove 0", "upsert 0"])
    stage.expect("no tenant was charged less at any time", low, before)
    stage.expect("charged the same before and after", ledger(master), before)
    states = [ask(master, "GET", f"/api/v1/segments/status?segment={quoted(host.hostname)}")["status_name"] for host in sources]
    stage.expect("every source is drained", states, ["DRAINED"] * hosts)

    versions = {key: version for one in seen for key, version in one["versions"].items()}
    reader = dict(zip(TENANTS, traffic))
    for when in ("after the drain", "after the sources left"):
        parts = [(reader[TENANTS[i % 2]], host) for i, host in enumerate(sources)]
        lost = [verify(client, host, share, quarter, versions) for client, host in parts]
        stage.expect(f"every object is there, byte for byte, {when}", [key for keys in lost for key in keys], [])
        where = [places for client, host in parts for places in (client.places(f"still-{host.name}-", 0, share - quarter), client.places(f"changing-{host.name}-", 0, quarter))]
        homes = {f"memory {endpoint}" for endpoint, name in stage.endpoints.items() if name in [target.name for target in targets]}
        stage.expect(f"every object lies on a target once, {when}", [sum(each.values()) for each in where] + [set(each) <= homes for each in where], [share - quarter, quarter] * hosts + [True] * len(where))
        if when == "after the drain":
            stage.together(*[host.close for host in sources])
            time.sleep(1)
    stage.expect("charged the same after the sources left", ledger(master), before)


def fill(host, share, quarter):
    """Writes a host's objects into its own memory."""
    config = {"$config": {"preferred_segment": host.hostname}}
    return host.fill(f"still-{host.name}-", 0, share - quarter, SIZE, config), host.fill(f"changing-{host.name}-", 0, quarter, SIZE, config)


def verify(client, host, share, quarter, versions):
    """The keys of a host's objects that are missing or wrong."""
    mine = {key: version for key, version in versions.items() if key.startswith(f"changing-{host.name}-")}
    return client.verify(f"still-{host.name}-", 0, share - quarter, SIZE) + client.verify(f"changing-{host.name}-", 0, quarter, SIZE, mine)

"""Memory filled to three times its size: what has no room any more goes to the hosts' disks, and everything is read back."""

import re
import threading
import time

from .stage import KB, MB, TENANTS, ledger

SIZE = 256 * KB
SEGMENT, QUICK_SEGMENT = 256 * MB, 16 * MB
TIMES = 3  # the memory
QUOTA = 0.4  # of the memory, for each tenant: together below the pool's watermark, so that promotions are let in
# Small buckets, written once a second: a client keeps objects in memory until a bucket is full.
CLIENT = {
    "MOONCAKE_OFFLOAD_HEARTBEAT_INTERVAL_SECONDS": "1",
    "MOONCAKE_OFFLOAD_BUCKET_KEYS_LIMIT": "8",
    "MOONCAKE_OFFLOAD_BUCKET_SIZE_LIMIT_BYTES": str(8 * MB),
    "MOONCAKE_OFFLOAD_LOCAL_BUFFER_SIZE_BYTES": str(64 * MB),
}
PARTS = 4  # of the fill; after each of them the ledger is compared with the replicas


def offload(stage):
    """Objects go to disk when they are written, so that those in memory can be given up at any time."""
    play(stage)


def promotion(stage):
    """Objects go to disk when they are evicted, and come back when they are read."""
    play(stage, offload_on_evict="true", promotion_on_hit="true", promotion_admission_threshold="1")


def play(stage, **flags):
    """Fills, reads back, removes; the ledger is exact at every stop and below the quota at every moment."""
    segment = QUICK_SEGMENT if stage.quick else SEGMENT
    quota = int(len(TENANTS) * segment * QUOTA)
    count = TIMES * segment // SIZE  # per tenant; there is one host for each
    master = stage.master(quota, default_kv_lease_ttl=200, enable_offload="true", **flags)
    hosts = []
    for tenant in TENANTS:
        disk = stage.folder / f"disk-{tenant}"
        disk.mkdir()
        hosts.append(stage.client(f"host-{tenant}", master, tenant, segment=segment, buffer=32 * MB, variables=CLIENT, enable_ssd_offload=True, ssd_offload_path=str(disk)))
    readers = [stage.client(f"reader-{tenant}", master, tenant, segment=0, buffer=32 * MB) for tenant in TENANTS]
    for client in hosts + readers:
        client.patience = 600
    watch = Watch(master, quota)

    steps = [count * part // PARTS for part in range(PARTS + 1)]
    refused = 0
    for first, last in zip(steps, steps[1:]):
        filled = stage.together(*[lambda host=host: host.fill("page-", first, last, SIZE, None, 60) for host in hosts])
        refused += sum(one["refused"] for one in filled)
        if not stage.expect(f"objects {first} to {last} written by both", [one["codes"] for one in filled], [{"0": last - first}] * 2):
            break
        exact(stage, master, readers, last, f"after {last} objects")
    stage.say(f"{2 * count} objects of {SIZE // KB} KiB in {2 * segment // MB} MiB of memory; told {refused} times to come later; charged {ledger(master)}")
    memory = [set(reader.in_memory("page-", 0, count)) for reader in readers]
    cold = [{f"page-{number}" for number in range(count)} - keys for keys in memory]
    wrong = stage.together(*[lambda reader=reader: reader.verify("page-", 0, count, SIZE) for reader in readers])
    stage.expect("everything is read back, byte for byte", wrong, [[], []])
    exact(stage, master, readers, count, "after reading")
    if "promotion_on_hit" in flags:
        back = until(lambda: any(set(keys) & set(reader.in_memory("page-", 0, count)) for keys, reader in zip(cold, readers)), True)
        stage.expect("objects that were only on disk are in memory again", back, True)
        stage.say(f"promotions: {promotions(master)}")
        exact(stage, master, readers, count, "after promotions")
        again = stage.together(*[lambda reader=reader: reader.verify("page-", 0, count, SIZE) for reader in readers])
        stage.expect("everything is read back once more", again, [[], []])
    stage.expect(f"no tenant was over its quota of {quota} at any time", watch.end(), [])
    for reader in readers:
        reader.remove_all(True)
    stage.expect("nothing is charged when all is removed", until(lambda: ledger(master), {name: 0 for name in TENANTS}), {name: 0 for name in TENANTS})
    stage.expect("nothing is left to read", [reader.is_exist(f"page-{number}") for reader in readers for number in (0, count - 1)], [0] * 4)


def exact(stage, master, readers, count, when):
    """Expects every tenant to be charged for exactly the memory replicas that its objects have."""
    seen = {}
    for _ in range(100):
        before = ledger(master)
        places = [reader.places("page-", 0, count) for reader in readers]
        memory = [sum(number for place, number in each.items() if place.startswith("memory")) for each in places]
        wanted = {name: number * SIZE for name, number in zip(TENANTS, memory)}
        seen = {"charged": before, "replicas": wanted, "places": places}
        if before == wanted == ledger(master):
            break
        time.sleep(0.1)  # an eviction, an offload or a promotion was under way
    stage.say(f"{when}: in memory {memory}, on disk {[each.get('local disk', 0) for each in places]} of {count} each")
    stage.expect(f"charged for exactly what is in memory {when}", [seen["charged"] == seen["replicas"], seen], [True, seen])


def until(look, wanted, seconds=10):
    """Looks until it sees wanted or the time is over."""
    deadline = time.monotonic() + seconds
    while (seen := look()) != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    return seen


def promotions(master):
    """The master's counters of promotions that are not zero."""
    found = re.findall(r"^master_promotion_(\w+?)(?:_total)? (\d+)", master.http("GET", "/metrics")[1], re.MULTILINE)
    return {name: int(value) for name, value in found if value != "0"}


class Watch:
    """Looks at the ledgers all the time and remembers who was over the quota."""

    def __init__(self, master, quota):
        self.master, self.quota, self.over, self.stop = master, quota, [], threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        """Until told to stop."""
        while not self.stop.wait(0.1):
            for name, charged in ledger(self.master).items():
                if charged > self.quota:
                    self.over.append([name, charged])

    def end(self):
        """What was seen."""
        self.stop.set()
        self.thread.join()
        return self.over

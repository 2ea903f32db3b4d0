"""The disk tier: objects on a client's own disk, read from there and promoted back into memory; replicas below a shared folder."""

import time

from . import scenario
from .objects import KB, MB, config
from .tenants import OFF, policy, snapshot

# The client looks for work once a second and writes every object at once, not only when a bucket of many is full.
QUICKLY = {
    "MOONCAKE_OFFLOAD_HEARTBEAT_INTERVAL_SECONDS": "1",
    "MOONCAKE_OFFLOAD_BUCKET_KEYS_LIMIT": "1",
    "MOONCAKE_OFFLOAD_BUCKET_SIZE_LIMIT_BYTES": str(64 * MB),
    "MOONCAKE_OFFLOAD_LOCAL_BUFFER_SIZE_BYTES": str(64 * MB),
}


def host(run, name, master, **options):
    """A client with a disk. Where it writes alone it is of the lane's second release: only who wrote an object may clear its replicas, in the form that its master knows."""
    disk = run.folder / f"disk-{name}"
    disk.mkdir()
    return run.client(name, master, variables=QUICKLY, enable_ssd_offload=True, ssd_offload_path=str(disk), **options)


def kinds(client, *keys):
    """For each key the kinds of replica it has."""
    return [sorted(one.get("kind", "memory") for one in found) if isinstance(found := client.get_replica_desc(key), list) else found for key in keys]


def keys(count, prefix="k"):
    """Their names."""
    return [f"{prefix}{i}" for i in range(count)]


def settled(run, client, names, wanted, seconds=15):
    """Waits until every key has these kinds of replica, and gives what they have."""
    return run.until(lambda: kinds(client, *names), [wanted] * len(names), seconds=seconds, pause=0.3)


@scenario
def offloaded(run):
    """Objects are offloaded when they are written; without their memory they are read from disk."""
    master = run.master(default_kv_lease_ttl=300, enable_offload="true")
    b = host(run, "B", master)
    reader, note, names = run.client("A", master, segment=0), run.note, keys(8)
    note("put", [b.put(key, run.content(key, 100 * KB)) for key in names])
    note("on disk too", settled(run, reader, names, ["local disk", "memory"]))
    time.sleep(0.5)  # the leases of that look end
    note("memory cleared", [sorted(b.batch_replica_clear(names[:4], b.hostname)), kinds(reader, *names)])
    note("read from disk", [reader.get(key) for key in names] + [b.get(key) for key in names[:2]])
    note("sizes", [reader.get_size(key) for key in names[:5]] + [reader.is_exist(names[0])])
    note("put again", [b.put(names[0], run.content("other", 100 * KB)), reader.get(names[0])])
    time.sleep(0.5)
    note("upsert", [b.upsert(names[1], run.content("other", 100 * KB)), reader.get(names[1])])
    note("removed", [b.remove(names[2], True), reader.get(names[2]), kinds(reader, names[2]), reader.batch_remove(names[3:5], True), reader.batch_is_exist(names)])
    note("all removed", [b.remove_all(True) >= 0, reader.batch_is_exist(names)])


@scenario(slow=True)
def offload_on_evict(run):
    """Objects are offloaded when memory runs out, and all of them can be read afterwards."""
    master = run.master(default_kv_lease_ttl=200, enable_offload="true", offload_on_evict="true")
    b = host(run, "B", master, segment=16 * MB)
    reader, note, names = run.client("A", master, segment=0), run.note, keys(36)

    def put(key):
        return run.until(lambda: b.put(key, run.content(key, MB)), 0, seconds=20)

    note("few stay in memory", [[put(key) for key in names[:4]], time.sleep(2.5), kinds(reader, *names[:4])])
    note("put", [put(key) for key in names[4:]])
    time.sleep(3)
    note("none is lost", reader.batch_is_exist(names))
    note("read", [reader.get(key) for key in names])


@scenario
def promoted(run):
    """An object that is only on disk comes back into memory when it is read often enough."""
    for threshold, wanted in ((2, ["local disk", "memory"]),) if run.quick else ((2, ["local disk", "memory"]), (200, ["local disk"])):
        master = run.master(default_kv_lease_ttl=300, enable_offload="true", promotion_on_hit="true", promotion_admission_threshold=threshold)
        b = host(run, f"B{threshold}", master)
        reader, names = run.client(f"A{threshold}", master, segment=0), keys(4)
        run.note(f"put {threshold}", [b.put(key, run.content(key, 100 * KB)) for key in names])
        run.note(f"on disk too {threshold}", settled(run, reader, names, ["local disk", "memory"]))
        time.sleep(0.5)
        run.note(f"memory cleared {threshold}", [sorted(b.batch_replica_clear(names, b.hostname)), kinds(reader, names[3])])
        run.note(f"read {threshold}", [reader.get(names[0]) for _ in range(3)])
        run.note(f"back in memory {threshold}", run.until(lambda: kinds(reader, names[0]), [wanted], seconds=10, pause=0.5))
        run.note(f"read again {threshold}", [reader.get(key) for key in names])


@scenario
def charged_offload(run):
    """What objects on disk cost a tenant."""
    _, flags = policy(run)
    master = run.master(default_kv_lease_ttl=300, enable_offload="true", only_14=OFF, **flags)
    a, b = host(run, "A", master, tenant="tenant-a"), host(run, "B", master, tenant="tenant-b")
    note, names = run.note, keys(4)
    on_a, on_b = config(preferred_segment=a.hostname), config(preferred_segment=b.hostname)
    note("put", [[a.put(key, run.content(key, 100 * KB), on_a) for key in names], [b.put(key, run.content("b" + key, 200 * KB), on_b) for key in names]])
    note("charged", [snapshot(master), snapshot(master, "tenant-b")])
    note("on disk too", [settled(run, a, names, ["local disk", "memory"]), settled(run, b, names, ["local disk", "memory"]), snapshot(master), snapshot(master, "tenant-b")])
    note("read", [a.get(names[0]), b.get(names[0])])
    note("removed", [a.remove_all(True) >= 0, snapshot(master), snapshot(master, "tenant-b"), [b.get(key) for key in names], a.batch_is_exist(names)])


@scenario
def shared_folder(run):
    """Replicas below a folder that all clients see."""
    folder = run.folder / "shared"
    folder.mkdir()
    master = run.master(default_kv_lease_ttl=300, root_fs_dir=folder, cluster_id="lane")
    a, b = run.pair(master)
    note, names = run.note, keys(4)
    note("put", [b.put(key, run.content(key, 100 * KB)) for key in names])
    note("on disk too", settled(run, a, names, ["disk", "memory"]))
    note("read", [a.get(key) for key in names])
    time.sleep(0.5)
    note("memory cleared", [b.batch_replica_clear(names[:2], host_of) for host_of in (a.hostname, b.hostname)] and kinds(b, *names[:2]))
    note("read from disk", [b.get(key) for key in names[:2]] + [a.get(key) for key in names[:2]])
    note("removed", [a.remove(names[0], True), b.is_exist(names[0]), kinds(b, names[0])])
    note("all removed", [a.remove_all(True) >= 0, b.batch_is_exist(names)])

"""The lane's client process with orders for many objects at once.

An object's bytes follow from its key and its version, so whoever reads it can tell whether they are right.
"""

import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lane.worker import Driver, content, main  # noqa: E402

# No memory yet, over quota yet; the key is being moved, copied or written.
LATER = (-200, -703, -708, -714, -1700)
PACE = 0.01  # seconds between rounds of traffic: an object that is read all the time is leased all the time, and waits
ORDERS = ("fill", "verify", "places", "in_memory", "churn", "churned")
READS = 50  # tries of one read: an answer that outlasts its lease is thrown away by the client


def expected(key, version, size):
    """The bytes of an object."""
    return content(f"{key}/{version}", size)


class Bulk(Driver):
    """A client with orders for many objects."""

    def __init__(self):
        super().__init__()
        self.stop, self.thread, self.seen = threading.Event(), None, None

    def call(self, method, args, kwargs):
        if method in ORDERS:
            return getattr(self, method)(*[self.plain(item) if isinstance(item, dict) and "$config" in item else item for item in args])
        return super().call(method, args, kwargs)

    def written(self, key, value, config=None, seconds=30, write="put"):
        """Writes one object, again while the master says "later"; gives the last code and how often it said so."""
        deadline, refused = time.monotonic() + seconds, 0
        while True:
            code = getattr(self.store, write)(key, value, *([config] if config else []))
            if code not in LATER or time.monotonic() > deadline or self.stop.is_set():
                return code, refused
            refused += 1
            time.sleep(0.02)

    def read(self, key, wanted):
        """Whether one object has the wanted bytes."""
        for _ in range(READS):
            got = self.store.get(key)
            if got == wanted:
                return True
            if got != b"":
                return False
            time.sleep(0.02)
        return False

    def fill(self, prefix, first, last, size, config=None, seconds=30):
        """Writes prefix<first>.. prefix<last-1>; gives the codes and the number of refusals before them."""
        codes, refused = Counter(), 0
        for number in range(first, last):
            key = f"{prefix}{number}"
            code, times = self.written(key, expected(key, 0, size), config, seconds)
            codes[str(code)] += 1
            refused += times
        return {"codes": dict(codes), "refused": refused}

    def verify(self, prefix, first, last, size, versions=None):
        """Reads them all; gives the keys whose bytes are missing or wrong."""
        keys = [f"{prefix}{number}" for number in range(first, last)]
        return [key for key in keys if not self.read(key, expected(key, (versions or {}).get(key, 0), size))]

    def places(self, prefix, first, last):
        """Where the objects lie: for each kind of replica ("memory ENDPOINT", "disk", "local disk") the number of objects that have one."""
        found = Counter()
        keys = [f"{prefix}{number}" for number in range(first, last)]
        for start in range(0, len(keys), 500):
            for replicas in self.store.batch_get_replica_desc(keys[start : start + 500]).values():
                for replica in replicas:
                    if replica.is_memory_replica():
                        found[f"memory {replica.get_memory_descriptor().buffer_descriptor.transport_endpoint}"] += 1
                    else:
                        found["local disk" if replica.is_local_disk_replica() else "disk"] += 1
        return dict(found)

    def in_memory(self, prefix, first, last):
        """The keys of those objects that have a replica in memory."""
        found = self.store.batch_get_replica_desc([f"{prefix}{number}" for number in range(first, last)])
        return [key for key, replicas in found.items() if any(replica.is_memory_replica() for replica in replicas)]

    def churn(self, prefix, size, watched, still, changing, moving):
        """Starts traffic in the background, until "churned": objects that come and go, reads of watched0.. watched<still-1> and upserts of changing0.. changing<moving-1>."""
        self.stop.clear()
        self.seen = {"rounds": 0, "codes": Counter(), "wrong": [], "versions": {}}
        self.thread = threading.Thread(target=self.traffic, args=(prefix, size, watched, still, changing, moving), daemon=True)
        self.thread.start()
        return 0

    def traffic(self, prefix, size, watched, still, changing, moving):
        """One round after the other until told to stop."""
        choice, seen = random.Random(prefix), self.seen
        while not self.stop.wait(PACE):
            own, version = f"{prefix}{seen['rounds']}", seen["rounds"] + 1
            code, _ = self.written(own, expected(own, 0, size))
            seen["codes"][f"put {code}"] += 1
            if code == 0 and not self.read(own, expected(own, 0, size)):
                seen["wrong"].append(own)
            seen["codes"][f"remove {self.store.remove(own, True)}"] += 1
            key = f"{watched}{choice.randrange(still)}"
            if not self.read(key, expected(key, 0, size)):
                seen["wrong"].append(key)
            key = f"{changing}{choice.randrange(moving)}"
            code, _ = self.written(key, expected(key, version, size), write="upsert")
            seen["codes"][f"upsert {code}"] += 1
            if code == 0:
                seen["versions"][key] = version
            seen["rounds"] = version

    def churned(self):
        """Ends the traffic and tells what it saw."""
        self.stop.set()
        self.thread.join()
        self.stop.clear()
        return {**self.seen, "codes": dict(self.seen["codes"])}


if __name__ == "__main__":
    main(Bulk)

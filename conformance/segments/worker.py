"""The lane's client process with orders whose values lie in a file of random bytes that all processes of a run share.

A value is [offset, size] of that file, and what is read is compared with it byte for byte. The Go program conformance/peer obeys
the same orders.
"""

import ctypes
import mmap
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lane.worker import Driver, main  # noqa: E402

ORDERS = ("values", "write", "read", "write_batch", "read_batch", "write_from", "read_into", "places", "clear", "end")


def verdict(got, wanted):
    """Says "same", or what of some bytes is not as it should be."""
    if got == wanted:
        return "same"
    if len(got) != len(wanted):
        return f"{len(got)} bytes instead of {len(wanted)}"
    first = next(i for i in range(0, len(wanted), 4096) if got[i : i + 4096] != wanted[i : i + 4096])
    first += next(i for i in range(4096) if got[first + i] != wanted[first + i])
    wrong = sum(got[i : i + 4096] != wanted[i : i + 4096] for i in range(0, len(wanted), 4096))
    return f"wrong from byte {first} of {len(wanted)} on, {wrong} blocks of 4096 bytes differ, {got[first : first + 8].hex()} instead of {wanted[first : first + 8].hex()}"


class Valued(Driver):
    """A client with orders about values of the shared file."""

    def call(self, method, args, kwargs):
        if method in ORDERS:
            return getattr(self, method)(*args)
        return super().call(method, args, kwargs)

    def values(self, name):
        """Opens the file of random bytes."""
        with open(name, "rb") as file:
            self.file = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return 0

    def value(self, offset, size):
        """The bytes of a value."""
        return self.file[offset : offset + size]

    def config(self, segments):
        """Where to put: a replica on each of these segments."""
        config = self.module.ReplicateConfig()
        config.replica_num = len(segments)
        config.preferred_segments = segments
        return config

    def write(self, verb, key, offset, size, segments):
        """Puts or upserts one value."""
        return getattr(self.store, verb)(key, self.value(offset, size), self.config(segments))

    def read(self, key, offset, size):
        """Gets one value and compares it. The client gives nothing when a read outlasts the lease, as on a busy machine; then it is read again."""
        for _ in range(20):
            got = self.store.get(key)
            if got != b"" or self.store.get_size(key) <= 0:
                break
        return verdict(got, self.value(offset, size))

    def write_batch(self, keys, values, segments):
        """Puts many values at once."""
        return self.store.put_batch(keys, [self.value(*value) for value in values], self.config(segments))

    def read_batch(self, keys, values):
        """Gets many values at once; gives the verdicts that are not "same"."""
        got = self.store.get_batch(keys)
        seen = [verdict(one, self.value(*value)) for one, value in zip(got, values)]
        return [f"{key}: {what}" for key, what in zip(keys, seen) if what != "same"] + ([] if len(got) == len(keys) else [f"{len(got)} values for {len(keys)} keys"])

    def registered(self, size, use):
        """Calls use with a buffer of size bytes that is registered meanwhile."""
        buffer = ctypes.create_string_buffer(size)
        code = self.store.register_buffer(ctypes.addressof(buffer), size)
        if code:
            return f"register_buffer: {code}"
        try:
            return use(buffer)
        finally:
            self.store.unregister_buffer(ctypes.addressof(buffer))

    def write_from(self, key, offset, size, segments):
        """Puts one value out of registered memory, without a copy."""

        def put(buffer):
            buffer[:] = self.value(offset, size)
            return self.store.put_from(key, ctypes.addressof(buffer), size, self.config(segments))

        return self.registered(size, put)

    def read_into(self, key, offset, size):
        """Gets one value into registered memory and compares it."""

        def get(buffer):
            count = self.store.get_into(key, ctypes.addressof(buffer), size)
            return verdict(buffer.raw, self.value(offset, size)) if count == size else f"get_into: {count}"

        return self.registered(size, get)

    def places(self, key):
        """The endpoints of a key's replicas in memory, sorted."""
        replicas = self.store.get_replica_desc(key)
        return sorted(one.get_memory_descriptor().buffer_descriptor.transport_endpoint for one in replicas if one.is_memory_replica())

    def clear(self, keys):
        """Removes keys, whoever may be reading them."""
        return [code for code in (self.store.remove(key, True) for key in keys) if code]

    def end(self):
        """Gives everything back, the devices included."""
        return self.store.close()


if __name__ == "__main__":
    main(Valued)

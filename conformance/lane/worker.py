"""One Mooncake client in a process of its own, driven by JSON lines.

Run by the Python of a release's virtual environment, so it uses the standard library and that release only. Each
line read is {"method": name, "args": [...], "kwargs": {...}}; each line written is {"result": value} or {"error": text}. Four
methods are ours: "open" makes the store and calls setup, "hold" registers a buffer and keeps it for put_from and get_into,
"task" orders a copy or a move and waits for its end, "bye" ends the process. Every other name is a method of MooncakeDistributedStore.

The libraries write to standard output as they please, so answers go to a private copy of it and descriptor 1 becomes
standard error. The process ends when its input ends: no client outlives the lane.
"""

import ctypes
import hashlib
import json
import os
import sys
import time

TASK_SECONDS = 20  # the clients look for tasks once a second


def content(seed, size):
    """The bytes that the lane calls (seed, size): the same in every process and release.

    A block of odd length is repeated, so a piece that lands at the wrong power of two is noticed.
    """
    block = hashlib.shake_128(seed.encode()).digest(min(size, 65521))
    return (block * (size // 65521 + 1))[:size]


def digest(data):
    """A short name for some bytes: their size and the start of their hash."""
    return [len(data), hashlib.sha256(data).hexdigest()[:16]]


class Driver:
    """Holds the store and the buffers registered with it."""

    def __init__(self):
        from mooncake import store

        self.module = store
        self.store = store.MooncakeDistributedStore()
        self.buffers = {}

    def plain(self, value):
        """Turns an argument of the lane into what the client takes."""
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$content" in value:
            return content(*value["$content"])
        if "$address" in value:
            return ctypes.addressof(self.buffers[value["$address"]])
        if "$config" in value:
            config = self.module.ReplicateConfig()
            for name, setting in value["$config"].items():
                if name == "soft_pin_action":
                    setting = getattr(self.module.SoftPinAction, setting)
                setattr(config, name, setting)
            return config
        raise ValueError(f"unknown argument {value}")

    def shown(self, value):
        """Turns an answer of the client into JSON."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return {"$digest": digest(bytes(value))}
        if isinstance(value, (list, tuple)):
            return [self.shown(item) for item in value]
        if isinstance(value, dict):
            return {str(key): self.shown(item) for key, item in value.items()}
        if hasattr(value, "is_memory_replica"):
            if not value.is_memory_replica():
                return {"kind": "local disk" if value.is_local_disk_replica() else "disk", "status": str(value.status).split(".")[-1]}
            where = value.get_memory_descriptor().buffer_descriptor
            return {"endpoint": where.transport_endpoint, "size": where.size, "status": str(value.status).split(".")[-1]}
        if hasattr(value, "size") and hasattr(value, "ptr"):  # BufferHandle
            return {"$digest": digest(bytes(memoryview(value)))}
        return str(value)

    def task(self, kind, *args):
        """Orders a copy or a move and waits for its end: the code, or what has become of it."""
        name, code = getattr(self.store, f"create_{kind}_task")(*args)
        if code:
            return [code]
        deadline = time.monotonic() + TASK_SECONDS
        while True:
            seen, code = self.store.query_task(name)
            told = [code] if code else [str(seen.type).split(".")[-1], str(seen.status).split(".")[-1], seen.message]
            if code or told[1] in ("SUCCESS", "FAILED") or time.monotonic() > deadline:
                return told
            time.sleep(0.05)

    def call(self, method, args, kwargs):
        """Runs one method and gives its answer as JSON."""
        args = [self.plain(item) for item in args]
        kwargs = {name: self.plain(item) for name, item in kwargs.items()}
        if method == "open":
            return self.store.setup(**kwargs)
        if method == "hold":
            name, size, seed = args
            buffer = ctypes.create_string_buffer(content(seed, size) if seed else b"", size)
            self.buffers[name] = buffer
            return self.store.register_buffer(ctypes.addressof(buffer), size)
        if method == "held":
            return {"$digest": digest(self.buffers[args[0]].raw[: args[1]])}
        if method == "task":
            return self.task(*args)
        answer = getattr(self.store, method)(*args, **kwargs)
        if method == "get":
            # The client gives nothing when a read outlasts the lease, as on a busy machine with the short leases of the
            # lane. Then the object is still there, and reading it again is no other question.
            for _ in range(5):
                if answer != b"" or self.store.get_size(*args) <= 0:
                    break
                answer = self.store.get(*args, **kwargs)
        return self.shown(answer)


def main(kind=Driver):
    """Obeys orders until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    driver = kind()
    print(json.dumps({"result": "ready"}), file=answers)
    for line in sys.stdin:
        order = json.loads(line)
        if order["method"] == "bye":
            break
        try:
            answer = {"result": driver.call(order["method"], order.get("args", []), order.get("kwargs", {}))}
        except Exception as error:  # told to the lane, which records or raises it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers)
    answers.close()
    os._exit(0)  # the client's destructors may wait for a master that is gone


if __name__ == "__main__":
    main()

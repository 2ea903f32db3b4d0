"""The original's client, as mooncake_bench measures it: one order per line of standard input, one answer per line of standard output."""

import json
import os
import sys
import time

from mooncake.store import MooncakeDistributedStore

store = MooncakeDistributedStore()


def processor_time(pid):
    """Seconds that a process has used; the kernel makes the number of a process's clock of its pid."""
    return time.clock_gettime(~pid << 3 | 2)


def checked(what, code):
    """Fails on the codes of errors."""
    if code != 0:
        raise RuntimeError(f"{what}: code {code}")


def put(key, value):
    """Stores a value, and says how long that took. The one before makes room for it."""
    begun = time.perf_counter()
    code = store.put(key, value)
    took = time.perf_counter() - begun
    checked(f"put {key}", code)
    checked(f"remove {key}", store.remove(key, True))
    return took


def get(key, value):
    """Gets a value, and says how long that took."""
    begun = time.perf_counter()
    got = store.get(key)
    took = time.perf_counter() - begun
    if len(got) != len(value) or got[:64] != value[:64] or got[-64:] != value[-64:]:
        raise RuntimeError(f"get {key}: {len(got)} bytes came back, not what was put")
    return took


def measure(write, size, warm, seconds, lender):
    """Puts or gets values one after the other for a while: how many, how long that took, and the processor time of both ends."""
    value = os.urandom(size)
    if not write:
        checked("put", store.put("value", value))
    turn = (lambda i: put(f"value{i}", value)) if write else (lambda i: get("value", value))
    number = 0
    until = time.monotonic() + warm
    while number == 0 or time.monotonic() < until:
        turn(number)
        number += 1
    count, took, until = 0, 0.0, time.monotonic() + seconds
    before = [time.process_time(), processor_time(lender)]
    while count == 0 or time.monotonic() < until:
        took += turn(number + count)
        count += 1
    after = [time.process_time(), processor_time(lender)]
    if not write:
        checked("remove", store.remove("value", True))
    return {"count": count, "took": took, "own": after[0] - before[0], "lender": after[1] - before[1]}


def main():
    """Serves orders until there are no more."""
    for line in sys.stdin:
        order = json.loads(line)
        method, settings = order.pop("method"), order
        try:
            if method == "open":
                checked("setup", store.setup(**settings))
                answer = {}
            else:
                answer = measure(**settings)
        except Exception as error:
            answer = {"error": str(error)}
        # The client itself may print what it likes to standard output.
        print("\nanswer " + json.dumps(answer), flush=True)
    store.close()


main()

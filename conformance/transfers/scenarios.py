"""What is carried: copies, moves and drains, with the owner at work or stopped."""

import os
import signal
import time

from .stage import FINISHED, MB

KB = 1 << 10
SIZES = (1, 4 * KB, 64 * KB + 1, 1 * MB, 8 * MB + 3)
CARRIED = "Task completed successfully, carried by the master"


def put(stage, key, size, *owners):
    """Puts a value on owners and sees that it is charged once for each."""
    before, value = stage.charged(), stage.value(size)
    stage.expect(f"put of {key}", stage.reader.call("write", "put", key, *value, [one.hostname for one in owners]), 0)
    stage.expect(f"places of {key}", stage.reader.call("places", key), sorted(one.endpoint for one in owners))
    stage.expect(f"charge of {key}", stage.charged() - before, size * len(owners))
    return value


def whole(stage, key, value, *owners):
    """Sees through both readers that a value is whole and lies where it should."""
    stage.expect(f"places of {key}", stage.reader.call("places", key), sorted(one.endpoint for one in owners))
    stage.expect(f"{key} read by a released client", stage.reader.call("read", key, *value), "same")
    stage.expect(f"{key} read by ours", stage.peer.call("read", key, *value), "same")


def tasks(stage):
    """Copies, then moves."""
    for size in SIZES:
        key = f"copied-{size}"
        value = put(stage, key, size, stage.source)
        before = stage.charged()
        order(stage, "copy", key, [stage.target.hostname])
        stage.expect(f"charge after the copy of {key}", stage.charged() - before, size)
        whole(stage, key, value, stage.source, stage.target)
    for size in SIZES:
        key = f"moved-{size}"
        value = put(stage, key, size, stage.source)
        before = stage.charged()
        order(stage, "move", key, stage.source.hostname, stage.target.hostname)
        stage.expect(f"charge after the move of {key}", stage.charged() - before, 0)
        whole(stage, key, value, stage.target)
    time.sleep(0.3)  # leases
    keys = [f"{kind}-{size}" for kind in ("copied", "moved") for size in SIZES]
    stage.expect("removal", stage.reader.call("clear", keys), [])
    stage.expect("charge in the end", stage.charged(), 0)


def order(stage, kind, key, *args):
    """Orders a copy or a move and sees who has carried it."""
    told = stage.reader.call("task", kind, key, *args)
    ends = told[1:2]
    stage.expect(f"{kind} of {key}", ends, ["SUCCESS"])
    if ends != ["SUCCESS"]:
        stage.failures.append(f"{kind} of {key}: {told}")
    if stage.executor == "master":
        stage.expect(f"who has carried the {kind} of {key}", told[2], CARRIED)


def drained(stage, limit=60):
    """Drains the source while its charge is watched; it is never less than the objects, and not more than twice."""
    before = stage.charged()
    job = stage.ask("POST", "/api/v1/drain_jobs", {"segments": [stage.source.hostname], "target_segments": [stage.target.hostname], "max_concurrency": 4})["job_id"]
    began, least, most = time.monotonic(), before, before
    while True:
        state, now = stage.ask("GET", f"/api/v1/drain_jobs/query?job_id={job}"), stage.charged()
        least, most = min(least, now), max(most, now)
        if state["status_name"] in FINISHED or time.monotonic() - began > limit:
            break
        time.sleep(0.01)
    stage.notes.append(f"drained in {time.monotonic() - began:.1f} s")
    stage.expect("the drain", [state["status_name"], state["failed_units"], state["blocked_units"]], ["SUCCEEDED", 0, 0])
    return before, least, most


def drain(stage, stop=False):
    """Drains the source. Objects with a second replica elsewhere are drained by giving up the one here, or from there."""
    both = stop and stage.transport.protocol == "tcp"  # of a stopped process nothing is read over TCP
    if both:
        stage.third = stage.owner("go", "third")
        stage.third.start()
        stage.third.started()
    owners = [stage.source, stage.third] if both else [stage.source]
    values = {f"drained-{size}": put(stage, f"drained-{size}", size, *owners) for size in SIZES}
    time.sleep(0.3)  # leases
    if stop and not both:
        time.sleep(3)  # the master connects to a segment within a second or two of its mount
    if stop:
        os.kill(stage.source.child.pid, signal.SIGSTOP)
    before, least, most = drained(stage)
    if not both:
        stage.expect("the charge was never less than the objects", least, before)
    stage.expect("the charge was never more than twice the objects", most <= 2 * before, True)
    stage.expect("charge after the drain", stage.charged(), before)
    for key, value in values.items():
        seen = stage.reader.call("places", key)
        stage.expect(f"{key} lies on the target", stage.target.endpoint in seen and stage.source.endpoint not in seen, True)
        stage.expect(f"{key} read by a released client", stage.reader.call("read", key, *value), "same")
        stage.expect(f"{key} read by ours", stage.peer.call("read", key, *value), "same")
    if stop:
        os.kill(stage.source.child.pid, signal.SIGCONT)
        # What the owner does when it goes on must not touch what lies elsewhere.
        time.sleep(2.5)
        for key, value in values.items():
            stage.expect(f"{key} read again when the owner goes on", stage.reader.call("read", key, *value), "same")
    time.sleep(0.3)
    stage.expect("removal", stage.reader.call("clear", list(values)), [])
    stage.expect("charge in the end", stage.charged(), 0)


def stopped(stage):
    """A drain while the owner is stopped."""
    drain(stage, stop=True)


SCENARIOS = {"tasks": tasks, "drain": drain, "stopped": stopped}

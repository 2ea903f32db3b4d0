"""One part of the matrix: a release, a transport and a way of finding each other, with its four cells."""

import json
import random
import re
import time
import traceback
from collections import defaultdict
from pathlib import Path

from lane.actors import Broken, Master
from lane.processes import Processes

from .parties import P2P, TRANSPORTS, Node, Peer, Released, published
from .wire import Wire

KB, MB = 1 << 10, 1 << 20
SIZES = (1, 2, 4 * KB, 64 * KB - 1, 64 * KB, 64 * KB + 1, 1 * MB, 16 * MB + 3, 256 * MB)
QUICK_SIZES = (1, 2, 4 * KB, 64 * KB + 1, 1 * MB, 3 * MB + 5)
BATCH, QUICK_BATCH = 40, 8
KINDS = ("real", "go")


class Group:
    """A master, a released client and a Go host that lend memory, and a client of each kind that use it.

    Every value is written by each kind of client, read by both, and written again with other bytes of the same size, so that
    what was there before is noticed.
    """

    def __init__(self, release, transport, metadata, quick, seed, values, programs, folder):
        self.release, self.transport, self.metadata = release, TRANSPORTS[transport], metadata
        self.quick, self.values, self.folder = quick, values, Path(folder)
        self.programs = Path(programs) / ("rdma" if self.transport.protocol == "rdma" else "")
        self.random = random.Random(f"{seed} {transport} {metadata}")
        self.room = values.stat().st_size
        self.processes, self.endpoints, self.descriptors = Processes(), {}, {}
        self.counts, self.failures = defaultdict(int), defaultdict(list)
        self.expected = defaultdict(lambda: [0, 0])  # bytes written and read by each client

    def fresh(self, size):
        """A value of this size that no other one is like."""
        return [self.random.randrange(self.room - size + 1), size]

    def judge(self, cell, what, seen, wanted):
        """Counts one check of a cell."""
        self.counts[cell] += 1
        if seen != wanted:
            self.failures[cell].append(f"{what}: {seen}" + ("" if wanted in (0, "same", []) else f", want {wanted}"))

    def play(self, cells):
        """Plays the cells; gives for each the number of checks, its failures, and the tails of the logs if there are any."""
        started, trouble = time.monotonic(), None
        try:
            self.open(cells)
            for owner in sorted({owner for _, owner in cells}, reverse=True):
                self.judge_descriptor(owner, [cell for cell in cells if cell[1] == owner])
                self.exchange(owner, [user for user in KINDS if (user, owner) in cells])
            self.close(cells)
        except Broken as error:
            trouble = str(error)
        except Exception:
            trouble = traceback.format_exc(limit=4)
        finally:
            self.processes.end()
        for cell in cells:
            if trouble:
                self.failures[cell].append(trouble)
        failed = any(self.failures.values())
        return {
            "seconds": round(time.monotonic() - started, 1),
            "cells": {" ".join(cell): [self.counts[cell], self.failures[cell]] for cell in cells},
            "tails": {log.name: tail(log) for log in sorted(self.folder.glob("*.log"))} if failed else {},
        }

    def open(self, cells):
        """Starts what the cells need."""
        self.master = Master(self, "ours", "master", {"default_kv_lease_ttl": 10_000}).start()
        self.metadata_address = P2P if self.metadata == "p2p" else f"http://127.0.0.1:{self.master.metadata_port}/metadata"
        segment, buffer = (64 * MB, 32 * MB) if self.quick else (640 * MB, 320 * MB)
        owners, users = {owner for _, owner in cells}, {user for user, _ in cells}
        self.owners, self.users = {}, {}
        if "real" in owners:
            self.owners["real"] = Released(self, "real-owner", segment, 16 * MB)
        if "go" in owners:
            self.owners["go"] = Node(self, "go-owner", segment)
        # Whoever acts, both kinds of client read.
        self.users = {"real": Released(self, "real-user", 0, buffer), "go": Peer(self, "go-user")} if users else {}
        everybody = [*self.owners.values(), *self.users.values()]
        for one in everybody:
            one.start()
        for one in everybody:
            one.started()
        mounted = {one["segment_name"]: one["te_endpoint"] for one in json.loads(self.master.http("GET", "/get_segments_detail")[1])["segments"]}
        for one in self.owners.values():
            if one.hostname not in mounted:
                raise Broken(f"the master has not mounted {one.hostname}")
            one.endpoint = mounted[one.hostname]  # with P2PHANDSHAKE the name of a released client is another one

    def judge_descriptor(self, owner, cells):
        """Sees that the owner publishes what this part of the matrix is about."""
        seen = self.descriptors[owner] = published(self.metadata_address, self.owners[owner].endpoint)
        for cell in cells:
            self.judge(cell, "protocol", seen["protocol"], self.transport.protocol)
            if self.transport.protocol == "rdma":
                self.judge(cell, "devices", sorted(one["name"] for one in seen["devices"]), sorted(self.transport.devices))

    def judge_version(self, user, owner):
        """Has a client write its first value, and sees the version that it does so in on the wire."""
        try:
            wire = Wire(self.descriptors[owner]["tcp_data_port"])
        except PermissionError:
            return
        self.write(user, owner, "write", f"{owner}-{user}-first", self.fresh(1), "put")
        self.judge((user, owner), "versions on the wire", wire.versions(), [self.transport.version])

    def write(self, user, owner, order, key, value, *first):
        """Has a client write a value and sees where it lies."""
        what = f"{order} of {value[1]} bytes"
        home = self.owners[owner]
        self.judge((user, owner), what, self.users[user].call(order, *first, key, *value, [home.hostname]), 0)
        self.judge((user, owner), f"place after the {what}", self.users[user].call("places", key), [home.endpoint])
        self.expected[user][0] += value[1]

    def look(self, user, writer, order, wanted, *args):
        """Has a client read. Version 1 tells a released writer that it has sent its bytes, not that they have arrived: then they may come a little later."""
        seen = self.users[user].call(order, *args)
        patient = time.monotonic() + (5 if writer == "real" and self.transport.protocol == "tcp" and self.transport.version == 1 else 0)
        while seen != wanted and time.monotonic() < patient:
            seen = self.users[user].call(order, *args)
        return seen

    def read(self, user, writer, owner, order, key, value):
        """Has a client read a value and compare it."""
        seen = self.look(user, writer, order, "same", key, *value)
        self.judge((user, owner), f"{order} of {value[1]} bytes that {writer} has written", seen, "same")
        self.expected[user][1] += value[1]

    def exchange(self, owner, acting):
        """Writes and reads with an owner's memory."""
        if self.transport.protocol == "tcp":
            for user in acting:
                self.judge_version(user, owner)
        for size in QUICK_SIZES if self.quick else SIZES:
            key = f"{owner}-{size}"
            for verb, user in zip(("put", "upsert"), acting):
                value = self.fresh(size)
                self.write(user, owner, "write", key, value, verb)
                for reader in acting:
                    self.read(reader, user, owner, "read", key, value)
            self.judge((acting[0], owner), f"removal of {key}", self.users[acting[0]].call("clear", [key]), [])
        for size in (64 * KB + 1,) if self.quick else (2, 64 * KB + 1, 16 * MB + 3):
            for user in acting:  # without a copy, or as a stream
                key, value = f"{owner}-{user}-from-{size}", self.fresh(size)
                self.write(user, owner, "write_from", key, value)
                for reader in acting:
                    self.read(reader, user, owner, "read_into", key, value)
        for user in acting:
            many = range(QUICK_BATCH if self.quick else BATCH)
            keys = [f"{owner}-{user}-batch-{i}" for i in many]
            values = [self.fresh(1 + 7_777 * i) for i in many]
            self.judge((user, owner), "batch put", self.users[user].call("write_batch", keys, values, [self.owners[owner].hostname]), 0)
            self.judge((user, owner), "place after the batch put", self.users[user].call("places", keys[-1]), [self.owners[owner].endpoint])
            total = sum(size for _, size in values)
            self.expected[user][0] += total
            for reader in acting:
                self.judge((reader, owner), f"batch get of what {user} has put", self.look(reader, user, "read_batch", [], keys, values), [])
                self.expected[reader][1] += total
            self.judge((user, owner), "removal of the batch", self.users[user].call("clear", keys), [])

    def close(self, cells):
        """Has everybody give back what they hold, and sees that the bytes went over the devices."""
        for one in (*self.users.values(), *self.owners.values()):
            seen = one.end()
            for cell in cells:
                if one in (self.users[cell[0]], self.owners[cell[1]]):
                    self.judge(cell, f"end of {one.name}", seen, 0)
        if self.transport.protocol != "rdma":
            return
        traffic = {}
        for line in (self.folder / "traffic").read_text().splitlines():
            counts = dict(re.findall(r"(\w+)=(\d+)", line))
            traffic[int(counts["pid"])] = [int(counts["write_bytes"]), int(counts["read_bytes"])]
        for user, one in self.users.items():
            for cell in cells:
                if cell[0] == user:
                    self.judge(cell, f"bytes that {one.name} moved through its devices", traffic.get(one.child.pid), self.expected[user])


def tail(log, lines=15):
    """The end of a log, without what is told all the time."""
    text = [line for line in log.read_text(errors="replace").splitlines() if "Admin Metrics" not in line]
    if log.name.startswith("real"):  # a released client tells every success
        text = [line for line in text if not line.startswith("I")]
    return text[-lines:]

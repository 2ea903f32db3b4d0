"""The processes of the matrix: released clients and our client and host, each obeying the orders of worker.py."""

import json
import os
import select
import socket
import struct
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

from lane.actors import Broken, Master
from lane.processes import CLIENTS, HERE, environment, free_ports

ROOT = HERE.parent
SOFTVERBS = Path(os.environ.get("SOFTVERBS_LIB") or ROOT / ".cache" / "softverbs" / "libibverbs.so.1")
P2P = "P2PHANDSHAKE"
PATIENCE = 60  # seconds for one order; a client itself gives up after 30


class Transport:
    """How bytes travel in one part of the matrix."""

    def __init__(self, name, protocol, version=2, devices=0):
        self.name, self.protocol, self.version = name, protocol, version
        self.devices = [f"softrdma{i}" for i in range(devices)]

    def variables(self, folder, released):
        """Environment variables of a process; the released client looks for device files, so the library is preloaded into it."""
        if self.protocol == "tcp":
            return {"MC_TCP_PROTO": str(self.version)} if released else {}
        shared = {"SOFTVERBS_DIR": str(folder / "softverbs"), "SOFTVERBS_NDEV": str(len(self.devices)), "SOFTVERBS_STATS": str(folder / "traffic")}
        return {**shared, "LD_PRELOAD": str(SOFTVERBS)} if released else {**shared, "LD_LIBRARY_PATH": str(SOFTVERBS.parent)}


TRANSPORTS = {
    one.name: one
    for one in (
        Transport("tcp-v1", "tcp", version=1),
        Transport("tcp-v2", "tcp", version=2),
        Transport("rdma-1", "rdma", devices=1),
        Transport("rdma-2", "rdma", devices=2),
    )
}


class Party:
    """One process with orders by JSON lines; `send` and `answer` apart, so that several can be at work."""

    def __init__(self, group, name, command, env):
        self.group, self.name = group, name
        self.log = group.folder / f"{name}.log"
        self.child = group.processes.start(command, self.log, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)  # select must see every answer

    def send(self, method, *args, **kwargs):
        """Gives an order."""
        try:
            self.child.stdin.write(json.dumps({"method": method, "args": args, "kwargs": kwargs}).encode() + b"\n")
            self.child.stdin.flush()
        except OSError as error:
            raise Broken(f"{self.name} takes no order: {error}, {self.child.wait(timeout=PATIENCE)}") from None

    def answer(self, seconds=PATIENCE):
        """Takes the answer to an order."""
        if not select.select([self.child.stdout], [], [], seconds)[0]:
            raise Broken(f"{self.name} gave no answer in {seconds} s")
        line = self.child.stdout.readline()
        if not line:
            raise Broken(f"{self.name} ended with {self.child.wait(timeout=PATIENCE)}")
        told = json.loads(line)
        return told["error"] if told.get("error") else told["result"]

    def call(self, method, *args, **kwargs):
        """Gives an order and waits for its answer."""
        self.send(method, *args, **kwargs)
        return self.answer()

    def bye(self):
        """Ends the process and waits for it."""
        self.child.stdin.close()
        self.child.wait(timeout=PATIENCE)


class Released(Party):
    """A released client, with a segment or without."""

    kind = "real"

    def __init__(self, group, name, segment, buffer, variables=None):
        self.segment, self.buffer = segment, buffer
        env = {**environment(group.release), **group.transport.variables(group.folder, True), **(variables or {})}
        worker = Path(__file__).with_name("worker.py")
        super().__init__(group, name, [str(CLIENTS / group.release / "bin" / "python"), str(worker)], env)

    def start(self):
        """Has it open; the answers are taken by `started`."""
        group = self.group
        self.send(
            "open",
            local_hostname="127.0.0.1",
            metadata_server=group.metadata_address,
            global_segment_size=self.segment,
            local_buffer_size=self.buffer,
            protocol=group.transport.protocol,
            rdma_devices=",".join(group.transport.devices),
            master_server_addr=f"127.0.0.1:{group.master.rpc}",
            tenant_id="default",
        )
        self.send("get_hostname")
        self.send("values", str(group.values))

    def started(self):
        """Waits until it is open; its name is known from then on."""
        for what, wanted in (("the start", "ready"), ("setup", 0)):
            seen = self.answer()
            if seen != wanted:
                raise Broken(f"{self.name}: {what}: {seen}")
        self.hostname = self.answer()
        self.answer()


class Peer(Party):
    """Our client, or our host."""

    kind = "go"

    def __init__(self, group, name, segment=0):
        self.segment = segment
        env = {**os.environ, **group.transport.variables(group.folder, False)}
        super().__init__(group, name, [group.peer], env)

    def start(self):
        """Has it open or lend; the answers are taken by `started`."""
        group = self.group
        common = dict(
            master=f"127.0.0.1:{group.master.rpc}",
            metadata=group.metadata_address,
            data_version=group.transport.version,
            protocol=group.transport.protocol,
            devices=group.transport.devices,
        )
        if self.segment:
            self.send("lend", name=f"127.0.0.1:{free_ports(1)[0]}", size=self.segment, **common)
            return
        self.send("open", **common)
        self.send("values", str(group.values))

    def started(self):
        """Waits until it is open; a host's name is known from then on."""
        ready, opened = self.answer(), self.answer()
        if self.segment:
            if not isinstance(opened, str) or ":" not in opened or " " in opened:
                raise Broken(f"{self.name}: {opened}")
            self.hostname = opened
            return
        if opened != 0:
            raise Broken(f"{self.name}: {opened}")
        self.answer()


def published(metadata, name):
    """The descriptor that an owner has published, asked for as its peers would."""
    if metadata != P2P:
        with urllib.request.urlopen(f"{metadata}?key={urllib.parse.quote('mooncake/ram/' + name, safe='')}", timeout=10) as answer:
            return json.loads(answer.read())
    host, port = name.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as conn:
        conn.sendall(struct.pack("<QB", 3, 1) + b"{}")
        text = b""
        while piece := conn.recv(1 << 16):
            text += piece
    return json.loads(text[9:])


__all__ = ["TRANSPORTS", "Broken", "Master", "Peer", "Released", "published"]

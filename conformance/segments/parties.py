"""The processes of the matrix: released clients and our client, obeying the orders of worker.py, and our node."""

import json
import os
import re
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

    def variables(self, folder, release):
        """Environment variables of a released client, or of a program of ours. The client looks for device files, so the library is preloaded into it."""
        if self.protocol == "tcp":
            return {"MC_TCP_PROTO": str(self.version)} if release else {}
        shared = {"SOFTVERBS_DIR": str(folder / "softverbs"), "SOFTVERBS_NDEV": str(len(self.devices)), "SOFTVERBS_STATS": str(folder / "traffic")}
        if not release:
            return {**shared, "LD_LIBRARY_PATH": str(SOFTVERBS.parent)}
        before = [CLIENTS / release / "mlx5" / "libmlx5.so.1"] if release == "0.3.14" else []  # install.sh says why
        return {**shared, "LD_PRELOAD": ":".join(map(str, [*before, SOFTVERBS]))}


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

    def end(self):
        """Has it give everything back, and ends it; gives the code of that."""
        code = self.call("end")
        self.child.stdin.close()
        status = self.child.wait(timeout=PATIENCE)
        return code or status


class Released(Party):
    """A released client, with a segment or without."""

    def __init__(self, group, name, segment, buffer, variables=None, tenant="default"):
        self.segment, self.buffer, self.tenant = segment, buffer, tenant
        env = {**environment(group.release), **group.transport.variables(group.folder, group.release), **(variables or {})}
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
            tenant_id=self.tenant,
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
    """Our client."""

    def __init__(self, group, name, tenant=""):
        self.tenant = tenant
        super().__init__(group, name, [str(group.programs / "peer")], {**os.environ, **group.transport.variables(group.folder, None)})

    def start(self):
        """Has it open; the answers are taken by `started`."""
        group = self.group
        self.send(
            "open",
            master=f"127.0.0.1:{group.master.rpc}",
            metadata=group.metadata_address,
            tenant=self.tenant,
            data_version=group.transport.version,
            protocol=group.transport.protocol,
            devices=group.transport.devices,
        )
        self.send("values", str(group.values))

    def started(self):
        """Waits until it is open."""
        for what, wanted in (("the start", "ready"), ("open", 0), ("values", 0)):
            seen = self.answer()
            if seen != wanted:
                raise Broken(f"{self.name}: {what}: {seen}")


class Node:
    """Our storage node."""

    def __init__(self, group, name, segment, **flags):
        self.group, self.name, self.log = group, name, group.folder / f"{name}.log"
        transport = group.transport
        settings = {
            "local_hostname": f"127.0.0.1:{free_ports(1)[0]}",
            "bind_address": "127.0.0.1",
            "master_server_address": f"127.0.0.1:{group.master.rpc}",
            "master_admin_address": f"127.0.0.1:{group.master.http_port}",
            "metadata_server": group.metadata_address,
            "global_segment_size": segment,
            "protocol": transport.protocol,
            "device_names": ",".join(transport.devices),
            "tcp_proto_version": transport.version,
            "drain_timeout": "0s",
            **flags,
        }
        command = [str(group.programs / "mooncake_node"), *(f"--{flag}={value}" for flag, value in settings.items())]
        env = {**os.environ, **transport.variables(group.folder, None)}
        self.child = group.processes.start(command, self.log, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)

    def start(self):
        """It starts by itself."""

    def started(self):
        """Waits until its memory is mounted; its name is known from then on."""
        if not select.select([self.child.stdout], [], [], PATIENCE)[0]:
            raise Broken(f"{self.name} mounts nothing in {PATIENCE} s")
        line = self.child.stdout.readline().decode()
        told = re.search(r"is serving: segment (\S+) endpoint (\S+)", line)
        if not told:
            raise Broken(f"{self.name}: {line.strip() or self.child.wait(timeout=PATIENCE)}")
        self.hostname, self.endpoint = told.groups()

    def end(self):
        """Stops it as an operator does; gives the exit status."""
        self.child.terminate()
        return self.child.wait(timeout=PATIENCE)


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


__all__ = ["TRANSPORTS", "Broken", "Master", "Node", "Peer", "Released", "published"]

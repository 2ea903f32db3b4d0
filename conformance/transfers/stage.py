"""What a transfer is tried with: a master that carries bytes, two owners, a reader, and a tenant's ledger."""

import json
import time
import traceback
from pathlib import Path

from lane.actors import Broken, Master
from lane.processes import Processes
from segments.group import tail
from segments.parties import P2P, SOFTVERBS, TRANSPORTS, Node, Peer, Released

MB = 1 << 20
TENANT, QUOTA = "tenant-a", 96 * MB
FINISHED = ("SUCCEEDED", "FAILED", "CANCELED")


class CarryingMaster(Master):
    """Our master with the libraries that its RDMA needs."""

    variables = {}

    def start(self):
        """Starts it with these variables besides its own."""
        import os

        before = dict(os.environ)
        os.environ.update(self.variables)
        try:
            return super().start()
        finally:
            os.environ.clear()
            os.environ.update(before)


class Stage:
    """One combination: who the owners are, the transport, the metadata, the executor."""

    def __init__(self, options, source, target, transport, metadata, executor, release, folder):
        self.source_kind, self.target_kind, self.executor, self.release = source, target, executor, release
        self.transport, self.metadata, self.quick = TRANSPORTS[transport], metadata, options["quick"]
        self.folder, self.values = Path(folder), Path(options["values"])
        self.programs = Path(options["programs"]) / ("rdma" if self.transport.protocol == "rdma" else "")
        self.processes, self.endpoints, self.started = Processes(), {}, time.monotonic()
        self.passed, self.failures, self.notes, self.at = 0, [], [], 0

    def expect(self, what, seen, wanted):
        """Counts one expectation."""
        if seen == wanted:
            self.passed += 1
        else:
            self.failures.append(f"{what}: saw {seen}, want {wanted}")

    def value(self, size):
        """Another value of the shared file."""
        self.at += 1 + size
        return [self.at - size, size]

    def open(self):
        """Starts everything."""
        policy = self.folder / "policy.yaml"
        policy.write_text(f"version: 1\ntenants:\n  - name: {TENANT}\n    quota: {QUOTA}\n")
        rdma = self.transport.protocol == "rdma"
        flags = {
            "enable_multi_tenants": "true",
            "tenant_quota_connector_type": "file",
            "tenant_quota_connector_uri": policy,
            "default_kv_lease_ttl": 200,
            "client_ttl": 60,
            "transfer_executor": self.executor,
            "transfer_takeover_ms": 1000,
            **({"transfer_metadata": P2P} if self.metadata == "p2p" else {}),
            **({"transfer_protocol": "rdma", "transfer_devices": ",".join(self.transport.devices), "transfer_sysfs": self.folder / "softverbs" / "sys"} if rdma else {}),
        }
        self.master = CarryingMaster(self, "ours", "master", flags)
        self.master.variables = {"MOONCAKE_MASTER": str(self.programs / "mooncake_master"), **(self.transport.variables(self.folder, None) if rdma else {})}
        self.master.start()
        self.metadata_address = P2P if self.metadata == "p2p" else f"http://127.0.0.1:{self.master.metadata_port}/metadata"
        self.source = self.owner(self.source_kind, "source")
        self.target = self.owner(self.target_kind, "target")
        self.reader = Released(self, "real-reader", 0, 32 * MB, tenant=TENANT)
        self.peer = Peer(self, "go-reader", tenant=TENANT)
        everybody = [self.source, self.target, self.reader, self.peer]
        for one in everybody:
            one.start()
        for one in everybody:
            one.started()
        mounted = {one["segment_name"]: one["te_endpoint"] for one in json.loads(self.master.http("GET", "/get_segments_detail")[1])["segments"]}
        for one in (self.source, self.target):
            one.endpoint = mounted[one.hostname]

    def owner(self, kind, name):
        """An owner of memory."""
        return Released(self, f"real-{name}", 64 * MB, 16 * MB, tenant=TENANT) if kind == "real" else Node(self, f"go-{name}", 64 * MB)

    def charged(self):
        """What the tenant is charged, in bytes."""
        return self.ask("GET", f"/api/v1/tenant_quotas?tenant_id={TENANT}")["data"]["charged_bytes"]

    def ask(self, method, path, body=None):
        """A JSON document from the admin interface."""
        status, text = self.master.http(method, path, json.dumps(body) if body is not None else None)
        if status >= 300:
            raise Broken(f"{method} {path}: {status} {text}")
        return json.loads(text)

    def play(self, scenario):
        """Plays a scenario; gives what was seen."""
        try:
            self.open()
            scenario(self)
        except Broken as error:
            self.failures.append(str(error))
        except Exception:
            self.failures.append(traceback.format_exc(limit=4))
        finally:
            self.processes.end()
        tails = {log.name: tail(log) for log in sorted(self.folder.glob("*.log"))} if self.failures else {}
        return {"seconds": round(time.monotonic() - self.started, 1), "passed": self.passed, "failures": self.failures, "notes": self.notes, "tails": tails}


__all__ = ["FINISHED", "MB", "QUOTA", "SOFTVERBS", "TENANT", "Stage"]

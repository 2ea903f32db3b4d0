"""What a load works with: one master, clients with orders for many objects, two tenants and their ledgers."""

import concurrent.futures
import json
import time
import urllib.parse
from pathlib import Path

from lane.actors import OURS, Broken, Client, Master
from lane.processes import Processes

KB, MB = 1 << 10, 1 << 20
TENANTS = ("tenant-a", "tenant-b")


class BulkClient(Client):
    """A released client that fills, verifies and churns."""

    worker = Path(__file__).with_name("worker.py")
    patience = 60  # seconds for one answer

    def answer(self, seconds=None):
        """Reads one answer; orders for many objects take their time."""
        return super().answer(seconds or self.patience)

    def call(self, method, args, kwargs):
        """Has the process obey; what goes wrong in it ends the load."""
        answer = super().call(method, args, kwargs)
        if isinstance(answer, str) and method in ("fill", "verify", "places", "in_memory", "churn", "churned"):
            raise Broken(f"client {self.name}: {method}: {answer}")
        return answer


class Stage:
    """Starts the processes of one load and counts what it expected and saw."""

    def __init__(self, options, folder):
        self.options, self.quick, self.folder = options, options.quick, folder
        self.ours = options.master == OURS
        self.metadata = options.metadata
        self.processes, self.endpoints, self.contents = Processes(), {}, {}
        self.passed = self.failed = 0
        self.started = time.monotonic()

    def named(self, value):
        """Answers as they are: nothing here is compared with another master."""
        return value

    def say(self, text):
        """One line of progress."""
        print(f"[{time.monotonic() - self.started:6.1f} s] {text}", flush=True)

    def expect(self, what, seen, wanted):
        """Counts one expectation."""
        good = seen == wanted
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        self.say(f"{'ok' if good else 'FAILED'}: {what}" + ("" if good else f": saw {seen}, want {wanted}"))
        return good

    def master(self, quota, only_14=None, **flags):
        """A master with the two tenants and the same quota for each."""
        policy = self.folder / "policy.yaml"
        policy.write_text("version: 1\ntenants:\n" + "".join(f"  - name: {name}\n    quota: {quota}\n" for name in TENANTS))
        strict = {"enable_multi_tenants": "true", "tenant_quota_connector_type": "file", "tenant_quota_connector_uri": policy}
        if self.options.master != "0.3.13":
            flags.update(only_14 or {})
        return Master(self, self.options.master, "master", {**strict, **flags}).start()

    def client(self, name, master, tenant, **options):
        """A client of the release under test."""
        one = BulkClient(self, name, self.options.release, master, tenant=tenant, **options)
        if one.opened != 0:
            raise RuntimeError(f"client {name} opened with {one.opened}")
        return one

    def together(self, *calls):
        """Makes the calls at the same time and gives their answers in order."""
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            return [future.result() for future in [pool.submit(call) for call in calls]]


def ask(master, method, path, body=None):
    """A JSON document from the admin interface."""
    status, text = master.http(method, path, json.dumps(body) if body is not None else None)
    if status >= 300:
        raise RuntimeError(f"{method} {path}: {status} {text}")
    return json.loads(text)


def ledger(master):
    """What each tenant is charged, in bytes."""
    return {name: ask(master, "GET", f"/api/v1/tenant_quotas?tenant_id={name}")["data"]["charged_bytes"] for name in TENANTS}


def quoted(segment):
    """A segment's name in a query."""
    return urllib.parse.quote(segment, safe=":")

"""The two kinds of process a scenario has: a master and clients of the released packages."""

import json
import os
import select
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from .processes import CLIENTS, HERE, environment, free_ports, site

OURS = "ours"
ANSWER_SECONDS = 60  # one call of a client; the client itself gives up after 30


class Broken(Exception):
    """A process of the scenario is gone or silent, so its remaining cases cannot be recorded."""


class Master:
    """A running master: one of the C++ releases or the binary under test."""

    def __init__(self, run, kind, name, flags):
        self.run, self.kind, self.flags = run, kind, flags
        self.log = run.folder / f"{name}.log"
        self.rpc, self.http_port, self.metadata_port = free_ports(3)
        self.child = None

    def command(self):
        """The command line, the same for every kind of master but for flags only some releases know."""
        program = os.environ.get("MOONCAKE_MASTER") or str(HERE.parent / "bin" / "mooncake_master")
        if self.kind != OURS:
            program = str(site(self.kind) / "mooncake" / "mooncake_master")
        fixed = {
            "rpc_port": self.rpc,
            "metrics_port": self.http_port,
            "enable_http_metadata_server": "true",
            "http_metadata_server_host": "127.0.0.1",
            "http_metadata_server_port": self.metadata_port,
        }
        return [program] + [f"--{name}={value}" for name, value in {**fixed, **self.flags}.items()]

    def start(self):
        """Starts the process and waits until it accepts connections on all its ports."""
        env = dict(os.environ) if self.kind == OURS else environment(self.kind)
        self.child = self.run.processes.start(self.command(), self.log, env=env, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        for port in (self.rpc, self.http_port, self.metadata_port):
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    if self.child.poll() is not None or time.monotonic() > deadline:
                        raise Broken(f"master {self.kind} did not come up: {self.command()}") from None
                    time.sleep(0.02)
        # The C++ masters open their ports when they are ready; ours opens them first and says 503 until its policy is loaded.
        while self.http("GET", "/api/v1/tenant_quotas")[0] == 503 and time.monotonic() < deadline:
            time.sleep(0.02)
        return self

    def exit_status(self, seconds=20):
        """Starts the process expecting it to end, and gives its exit status."""
        env = dict(os.environ) if self.kind == OURS else environment(self.kind)
        self.child = self.run.processes.start(self.command(), self.log, env=env, stdin=subprocess.DEVNULL)
        try:
            return self.child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return "still running"

    def stop(self, how=signal.SIGKILL):
        """Ends the process."""
        self.run.processes.kill(self.child, how)

    def http(self, method, path, body=None):
        """One request to the metrics port: [status, body]."""
        data = body.encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.http_port}{path}", method=method, data=data)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return [answer.status, answer.read().decode()]
        except urllib.error.HTTPError as error:
            return [error.code, error.read().decode()]

    def keys(self):
        """The keys of the default tenant that are readable, sorted; asking grants no lease."""
        return sorted(self.http("GET", "/get_all_keys")[1].splitlines())


class Client:
    """One released client in its own process; unknown attributes are its methods."""

    worker = HERE / "lane" / "worker.py"

    def __init__(self, run, name, release, master, tenant="default", segment=64 << 20, buffer=80 << 20, variables=None, **settings):
        """Starts the process with these environment variables besides its own, and opens it with these settings besides the usual."""
        self.run, self.name, self.release = run, name, release
        self.log = run.folder / f"client-{name}.log"
        env = {**environment(release), **(variables or {})}
        self.child = run.processes.start([str(CLIENTS / release / "bin" / "python"), str(self.worker)], self.log, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answer()
        metadata = f"http://127.0.0.1:{master.metadata_port}/metadata" if run.metadata == "http" else "P2PHANDSHAKE"
        self.opened = self.call(
            "open",
            [],
            dict(
                local_hostname="127.0.0.1",
                metadata_server=metadata,
                global_segment_size=segment,
                local_buffer_size=buffer,
                protocol="tcp",
                rdma_devices="",
                master_server_addr=f"127.0.0.1:{master.rpc}",
                tenant_id=tenant,
                **settings,
            ),
        )
        self.hostname = self.call("get_hostname", [], {}) if self.opened == 0 else None
        run.endpoints[self.hostname] = name
        for mounted in json.loads(master.http("GET", "/get_segments_detail")[1])["segments"] if self.hostname and segment else []:
            if mounted["segment_name"] == self.hostname:  # with P2PHANDSHAKE its address is another one
                run.endpoints[mounted["te_endpoint"]] = name

    def answer(self, seconds=ANSWER_SECONDS):
        """Reads one answer line."""
        if not select.select([self.child.stdout], [], [], seconds)[0]:
            raise Broken(f"client {self.name} gave no answer in {seconds} s")
        line = self.child.stdout.readline()
        if not line:
            raise Broken(f"client {self.name} ended with {self.child.wait()}")
        told = json.loads(line)
        return told["result"] if "result" in told else told["error"]

    def call(self, method, args, kwargs):
        """Has the process run one method and gives the answer, content and endpoints by their names in the lane."""
        self.child.stdin.write(json.dumps({"method": method, "args": args, "kwargs": kwargs}).encode() + b"\n")
        self.child.stdin.flush()
        return self.run.named(self.answer())

    def __getattr__(self, method):
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda *args, **kwargs: self.call(method, list(args), kwargs)

    @property
    def probes(self):
        """Whether this release's client has existence probes."""
        return self.release != "0.3.13"

    def pause(self):
        """Stops the process as a debugger or a stalled machine would."""
        os.kill(self.child.pid, signal.SIGSTOP)

    def resume(self):
        """Lets a paused process go on."""
        os.kill(self.child.pid, signal.SIGCONT)

    def kill(self):
        """Ends the process as a crash would."""
        self.run.processes.kill(self.child)

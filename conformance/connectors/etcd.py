#!/usr/bin/env python3
"""An etcd for the conformance kit, with its data in FOLDER.

usage: etcd.py FOLDER start|stop                         by us; start prints its address
       etcd.py FOLDER set|delete|break|restore|second    by the kit; documents come on standard input
"""

import base64
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.request

KEY = "mooncake-store/kit/tenant_quota_policy"
# Beyond an etcd's usual limit nobody can store anything there.
LIMIT = 1_400_000


def free_address() -> str:
    """An address that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"


class Etcd:
    """One server with one member."""

    def __init__(self, folder: str):
        self.folder = pathlib.Path(folder)

    def address(self) -> str:
        return (self.folder / "address").read_text()

    def start(self) -> None:
        """Starts it, again if need be, and waits until it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "address").exists():
            (self.folder / "address").write_text(free_address())
            (self.folder / "peer").write_text(free_address())
        ours, peer = self.address(), (self.folder / "peer").read_text()
        with open(self.folder / "log", "ab") as log:
            server = subprocess.Popen(
                ["etcd", "--name=kit", f"--data-dir={self.folder / 'data'}", f"--listen-client-urls={ours}", f"--advertise-client-urls={ours}",
                 f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=kit={peer}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        (self.folder / "pid").write_text(str(server.pid))
        end = time.monotonic() + 20
        while True:
            try:
                self.call("range", {"key": encoded(KEY)})
                return
            except OSError as error:
                if server.poll() is not None or time.monotonic() > end:
                    sys.exit(f"etcd does not serve at {ours}: {error}\n" + (self.folder / "log").read_text()[-1000:])
                time.sleep(0.05)

    def stop(self) -> None:
        """Ends it as a machine that fails would."""
        try:
            pid = int((self.folder / "pid").read_text())
            os.kill(pid, signal.SIGKILL)
            while True:  # until the port is free; it is nobody's child any more
                os.kill(pid, 0)
                time.sleep(0.02)
        except (FileNotFoundError, ProcessLookupError):
            pass

    def call(self, what: str, body: dict) -> None:
        """Calls the server over its JSON interface."""
        request = urllib.request.Request(f"{self.address()}/v3/kv/{what}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=5) as answer:
            answer.read()

    def put(self, document: bytes) -> int:
        """Stores a document; 3 if it is larger than etcd takes."""
        if len(document) > LIMIT:
            return 3
        self.call("put", {"key": encoded(KEY), "value": base64.b64encode(document).decode()})
        return 0


def encoded(text: str) -> str:
    """As etcd's JSON wants keys."""
    return base64.b64encode(text.encode()).decode()


def main() -> int:
    """Does what is asked for; 3 says that it can't be done."""
    folder, verb = sys.argv[1:]
    etcd, second = Etcd(folder), Etcd(folder + "/second")
    if verb in ("start", "restore"):
        etcd.start()
        if verb == "start":
            print(etcd.address())
    elif verb == "stop":
        etcd.stop()
        second.stop()
    elif verb == "break":
        etcd.stop()
    elif verb == "set":
        return etcd.put(sys.stdin.buffer.read())
    elif verb == "delete":
        etcd.call("deleterange", {"key": encoded(KEY)})
    elif verb == "second":
        if not (second.folder / "pid").exists():
            second.start()
        print(second.address())
        return second.put(sys.stdin.buffer.read())
    else:
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())

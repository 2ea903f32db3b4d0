"""Processes that cannot outlive the lane, free ports, and the folders of the installed releases.

A runner process is single-threaded, so the hook that ties a child's life to its parent's is safe. Every child gets a process
group of its own; Processes.end() ends the groups whatever happened before.
"""

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
CLIENTS = Path(os.environ.get("MOONCAKE_CLIENTS") or HERE.parent / ".cache" / "clients")
RELEASES = ("0.3.13", "0.3.14")
_PR_SET_PDEATHSIG = 1


def die_with_parent():
    """Asks the kernel to end this process when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def site(release):
    """The folder of the packages of an installed release."""
    return next((CLIENTS / release / "lib").glob("python3*/site-packages"))


def environment(release):
    """The environment that a release's programs and client need."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MC_", "MOONCAKE_"))}
    env["GLOG_logtostderr"] = "1"
    env["GLOG_v"] = "0"
    if release == "0.3.14":
        packages = site(release)
        folders = [packages / "mooncake", *packages.glob("mooncake_transfer_engine*.libs"), packages / "nvidia" / "cu13" / "lib", CLIENTS / release / "driver"]
        env["LD_LIBRARY_PATH"] = ":".join(str(folder) for folder in folders)
    return env


# The system gives ports of its own range, from 32768 on, to whoever connects, and the released clients take theirs
# below 18000. A port from in between is still free when its master binds it.
PORTS = range(20000, 32000)


def free_ports(count):
    """Distinct TCP ports that nobody listens on, on any address."""
    with contextlib.ExitStack() as stack:
        ports = []
        for port in random.sample(PORTS, len(PORTS)):
            if len(ports) == count:
                break
            listener = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                listener.bind(("0.0.0.0", port))
                ports.append(port)
        if len(ports) < count:
            raise RuntimeError(f"no {count} free ports between {PORTS.start} and {PORTS.stop}")
        return ports


class Processes:
    """The children of one runner."""

    def __init__(self):
        self.children = []

    def start(self, command, log, **options):
        """Starts a child with its standard error (and, unless given, output) in the file log."""
        with open(log, "ab") as sink:
            options.setdefault("stdout", sink)
            child = subprocess.Popen(command, stderr=sink, start_new_session=True, preexec_fn=die_with_parent, **options)
        self.children.append(child)
        return child

    @staticmethod
    def kill(child, signal_number=signal.SIGKILL):
        """Ends a child's whole group and waits for the child."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal_number)
        child.wait(timeout=30)

    def end(self):
        """Ends every child still there."""
        for child in self.children:
            if child.poll() is None:
                self.kill(child)
        self.children.clear()

"""Plays one check against one master, alone in a network of its own."""

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lane.actors import OURS
from lane.processes import CLIENTS, Processes, die_with_parent, environment, site

from .checks import CHECKS, CLIENT_PORT, MASTER_PORTS

START_SECONDS = 20
TAIL_LINES = 25
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def own_network():
    """The start of a command line whose process gets an empty network of its own."""
    for form in (["unshare", "-n"], ["unshare", "-rn"]):
        if shutil.which("unshare") and subprocess.run([*form, "true"], capture_output=True).returncode == 0:
            return form
    sys.exit("conformance: the checks of the original use fixed ports; they need a network namespace (unshare -n)")


def loopback_up():
    """Brings up the loopback device of a new network."""
    with socket.socket() as any_socket:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | _IFF_UP, b""))


def listening(port, child):
    """Waits until somebody listens on a port; false when the process ends first or time is over."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


def outcomes(file):
    """What a recorder wrote: [test, outcome, why], the worst word per test; a test that only started has ended its process."""
    found = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        told = json.loads(line)
        known = found.get(told["test"], ["", ""])
        if known[0] != "failed":
            found[told["test"]] = [told["outcome"], told["why"]]
    return [[test, "failed" if word == "started" else word, why or ("the process ended in it" if word == "started" else "")] for test, (word, why) in found.items()]


class Play:
    """One check, one release, one master."""

    def __init__(self, checkout, name, release, target, folder):
        self.check, self.release, self.target, self.folder = CHECKS[name], release, target, folder
        self.name, self.file = name, Path(checkout) / self.check.path
        self.disk = folder / "disk"
        self.disk.mkdir()
        self.processes = Processes()

    def filled(self, settings):
        """The settings with the run's folder in place of its name."""
        return {name: value.format(disk=self.disk) for name, value in settings.items()}

    def start(self, name, command, ports, env):
        """Starts a process and waits for its ports."""
        child = self.processes.start([str(part) for part in command], self.folder / f"{name}.log", env=env, stdin=subprocess.DEVNULL, cwd=self.folder)
        if not all(listening(port, child) for port in ports):
            raise RuntimeError(f"{name} did not come up")
        return child

    def run(self):
        """Lets the check run, class by class where they need that, and gives its outcomes."""
        result = []
        for name in self.check.apart:
            result += self.one(name)
            self.processes.end()
        return result

    def one(self, part):
        """Starts everything, lets the class part (or all) run and gives the outcomes."""
        env = {**environment(self.release), **self.filled(self.check.environment)}
        env["PYTHONPATH"] = os.environ.get("MOONCAKE_TORCH", "")
        packages = site(self.release) / "mooncake"
        ours = os.environ.get("MOONCAKE_MASTER", "")
        flags = {"default_kv_lease_ttl": "500", "enable_http_metadata_server": "true", **self.filled(self.check.flags)}
        program = ours if self.target == OURS else packages / "mooncake_master"
        master_env = dict(os.environ) if self.target == OURS else environment(self.release)
        self.start("master", [program, *(f"--{name}={value}" for name, value in flags.items())], MASTER_PORTS, master_env)
        if self.check.real_client:
            self.start("client", [packages / "mooncake_client"], [CLIENT_PORT], env)
        recorder = Path(__file__).with_name("recorder.py")
        python = CLIENTS / self.release / "bin" / "python"
        running = []
        for number, arguments in enumerate(self.check.together):
            out = self.folder / f"outcomes-{part}-{number}.jsonl"
            command = [python, self.file, *arguments] if self.check.plain else [python, recorder, self.file, part, out, *arguments]
            running.append((arguments, out, self.start(f"check-{number}", command, [], env)))
        deadline, result = time.monotonic() + self.check.seconds, []
        for arguments, out, child in running:
            try:
                status = child.wait(timeout=max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                status = f"not over after {self.check.seconds} s"
            told = [[self.name, "failed" if status else "passed", f"exit status {status}" if status else ""]] if self.check.plain else outcomes(out)
            if status and not any(word == "failed" for _, word, _ in told):
                told.append(["the process", "failed", f"exit status {status}"])
            prefix = f"{arguments[-1]}: " if len(running) > 1 else ""
            result += [[prefix + test, word, why] for test, word, why in told]
        return result


def play(checkout, name, release, target, out):
    """Plays one check and writes its report to the file out."""
    die_with_parent()
    loopback_up()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="upstream-") as folder:
        one = Play(checkout, name, release, target, Path(folder))
        try:
            tests = one.run()
        except RuntimeError as error:
            tests = [["start", "failed", str(error)]]
        finally:
            one.processes.end()
        tails = {log.name: log.read_text(errors="replace").splitlines()[-TAIL_LINES:] for log in sorted(Path(folder).glob("*.log"))}
    Path(out).write_text(json.dumps({"seconds": round(time.monotonic() - started, 1), "tests": tests, "tails": tails}))

#!/usr/bin/env python3
"""Runs every command that the documentation shows, in order, and fails with the first that does.

usage: docs.py FILE.md...

Blocks fenced as ```bash are run from the project's root. A comment before a block changes that:
  <!-- ci: background PORT -->  starts it and goes on when PORT is open, a master when it serves; it is stopped at the end of the file
  <!-- ci: skip, REASON -->     leaves it out
"""
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

BLOCK = re.compile(r"(?:<!-- ci: (?P<how>[^>]*?) -->\n)?```bash\n(?P<text>.*?)```", re.S)


def wait_for(port, process):
    """Waits until something listens on the port."""
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit(f"ended with {process.returncode} before port {port} was open")
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise SystemExit(f"port {port} is not open after two minutes")


def wait_for_master(text, process):
    """Waits until the master that a block starts takes requests."""
    port = re.search(r"--metrics_port=(\d+)", text)
    url = f"http://127.0.0.1:{port[1] if port else 9003}/get_all_segments"
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit(f"ended with {process.returncode} before it served")
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:  # not there yet, or answers 503
            time.sleep(0.1)
    raise SystemExit(f"{url} does not answer after a minute")


def end(process):
    """Ends a process and what it has started; returns when all are gone, so that their ports are free."""
    for sign, patience in ((signal.SIGTERM, 15), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, sign)
            for _ in range(patience * 20):
                process.poll()
                os.killpg(process.pid, 0)
                time.sleep(0.05)
        except ProcessLookupError:
            return
    raise SystemExit(f"the processes of group {process.pid} do not end")


def run(path):
    """Runs the blocks of one file and returns how many there were."""
    background, count = [], 0
    try:
        for block in BLOCK.finditer(open(path, encoding="utf-8").read()):
            how, text = block["how"] or "", block["text"]
            if how.startswith("skip,"):
                continue
            count += 1
            print(f"--- {path}\n{text.rstrip()}", flush=True)
            if how.startswith("background "):
                p = subprocess.Popen(["bash", "-ec", text], start_new_session=True)
                background.append(p)
                wait_for(int(how.split()[1]), p)
                if "mooncake_master" in text:
                    wait_for_master(text, p)
            elif how:
                raise SystemExit(f"{path}: what is 'ci: {how}'?")
            else:
                subprocess.run(["bash", "-eo", "pipefail", "-c", text], check=True, timeout=600)
                print(flush=True)
    except subprocess.CalledProcessError as e:
        raise SystemExit(f"{path}: the command above ends with {e.returncode}")
    finally:
        for p in background:
            end(p)
    return count


def main():
    """Runs all files."""
    total = 0
    for path in sys.argv[1:]:
        n = run(path)
        if n == 0:
            raise SystemExit(f"{path} shows no command")
        total += n
    print(f"documentation: {total} passed, 0 failed")


if __name__ == "__main__":
    main()

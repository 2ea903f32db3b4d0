"""Command line of the loads: plays them against one master and judges what is seen.

    python3 -m load [drain] [offload] [promotion] [--quick] [--master ours|0.3.13|0.3.14] [--release 0.3.13|0.3.14] [--metadata http|p2p]
"""

import argparse
import re
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from lane.actors import OURS, Broken
from lane.processes import RELEASES, Processes, die_with_parent

from .drain import drain
from .offload import offload, promotion
from .stage import Stage

LOADS = {"drain": drain, "offload": offload, "promotion": promotion}
TAIL_LINES = 12


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="conformance/load.sh", description=__doc__.splitlines()[0])
    parser.add_argument("loads", nargs="*", choices=[*LOADS, []], help="default: all, at the same time")
    parser.add_argument("--quick", action="store_true", help="small ones, for every change")
    parser.add_argument("--master", choices=(OURS, *RELEASES), default=OURS)
    parser.add_argument("--release", choices=RELEASES, default=RELEASES[-1], help="release of the clients")
    parser.add_argument("--metadata", choices=("http", "p2p"), default="p2p")
    options = parser.parse_intermixed_args()
    options.loads = options.loads or list(LOADS)
    return options


def play(options):
    """Plays one load and tells what was seen; gives the counts."""
    started, name = time.monotonic(), options.loads[0]
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        stage = Stage(options, Path(folder))
        try:
            LOADS[name](stage)
        except Broken as error:
            stage.expect("no process broke off", str(error), "")
        except Exception:
            stage.expect("no step failed", traceback.format_exc(limit=4), "")
        finally:
            stage.processes.end()
        if stage.failed:
            for log in sorted(Path(folder).glob("*.log")):
                lines = log.read_text(errors="replace").splitlines()
                if not log.name.startswith("master"):  # a client tells every success
                    lines = [line for line in lines if line.startswith(("E", "W"))]
                print(f"\n--- {log.name}\n    " + "\n    ".join(line[:300] for line in lines[-TAIL_LINES:]))
    print(f"\n{name}: {time.monotonic() - started:.0f} s")
    return stage.passed, stage.failed


def play_all(options):
    """Plays several loads at the same time, each in a process of its own, and tells one after the other; gives the counts."""
    common = ["--master", options.master, "--release", options.release, "--metadata", options.metadata] + (["--quick"] if options.quick else [])
    processes, passed, failed = Processes(), 0, 0
    with tempfile.TemporaryDirectory(prefix="loads-") as folder:
        running = []
        try:
            for name in options.loads:
                log = Path(folder) / f"{name}.log"
                running.append((log, processes.start([sys.executable, "-m", "load", name, *common], log, cwd=Path(__file__).resolve().parent.parent)))
            for log, child in running:
                status, text = child.wait(), log.read_text(errors="replace")
                print(f"=== {log.stem}\n{text}", flush=True)
                counts = re.search(r"(\d+) passed, (\d+) failed\s*$", text)
                passed += int(counts[1]) if counts else 0
                failed += int(counts[2]) if counts else 1
                failed += status != 0 and counts is not None and counts[2] == "0"
        finally:
            processes.end()
    return passed, failed


def main():
    """Plays the loads; the exit status is 0 when everything they expect was seen."""
    options = arguments()
    if len(options.loads) == 1:
        die_with_parent()
        passed, failed = play(options)
    else:
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, lambda *_: sys.exit("conformance: interrupted"))
        passed, failed = play_all(options)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

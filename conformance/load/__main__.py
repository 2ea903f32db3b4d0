"""Command line of the loads: plays one of them against one master and judges it.

    python3 -m load drain|offload [--quick] [--master ours|0.3.13|0.3.14] [--release 0.3.13|0.3.14] [--metadata http|p2p]
"""

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

from lane.actors import OURS, Broken
from lane.processes import RELEASES

from .drain import drain
from .offload import offload
from .stage import Stage

LOADS = {"drain": drain, "offload": offload}
TAIL_LINES = 12


def main():
    """Plays the load; the exit status is 0 when everything it expects was seen."""
    parser = argparse.ArgumentParser(prog="conformance/load.sh", description=__doc__.splitlines()[0])
    parser.add_argument("load", choices=tuple(LOADS))
    parser.add_argument("--quick", action="store_true", help="a small one, for every change")
    parser.add_argument("--master", choices=(OURS, *RELEASES), default=OURS)
    parser.add_argument("--release", choices=RELEASES, default=RELEASES[-1], help="release of the clients")
    parser.add_argument("--metadata", choices=("http", "p2p"), default="p2p")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        stage = Stage(options, Path(folder))
        try:
            LOADS[options.load](stage)
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
    print(f"\n{options.load}: {time.monotonic() - started:.0f} s")
    print(f"{stage.passed} passed, {stage.failed} failed")
    return 1 if stage.failed else 0


if __name__ == "__main__":
    sys.exit(main())

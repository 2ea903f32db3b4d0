"""Command line of the matrix: plays its parts, each in a process of its own, and shows the cells.

    python3 -m segments [--quick] [--releases 0.3.13,0.3.14] [--transports tcp-v1,tcp-v2,rdma-1,rdma-2] [--metadata http,p2p] [--cells real-real,real-go,go-real,go-go] [--seed N] [--jobs N]
"""

import argparse
import concurrent.futures
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lane.processes import RELEASES, die_with_parent

from .group import KINDS, MB, Group
from .parties import TRANSPORTS

METADATA = ("http", "p2p")
CELLS = tuple(f"{user}-{owner}" for owner in KINDS for user in KINDS)
PART_SECONDS = 600
RUNNERS = set()


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="conformance/segments.sh", description="Values of 1 byte to 256 MB between released clients and ours, in each other's memory.")
    parser.add_argument("--quick", action="store_true", help="small values, and the releases in turn: what CI runs")
    for name, all_of_them in (("releases", RELEASES), ("transports", TRANSPORTS), ("metadata", METADATA), ("cells", CELLS)):
        parser.add_argument(f"--{name}", default="", help=f"some of {','.join(all_of_them)}")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31), help="which values")
    parser.add_argument("--jobs", type=int, default=2, help="parts at a time")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--values", help=argparse.SUPPRESS)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    options, given = parser.parse_args(), False
    for name, all_of_them in (("releases", RELEASES), ("transports", TRANSPORTS), ("metadata", METADATA), ("cells", CELLS)):
        chosen = [part for part in getattr(options, name).split(",") if part]
        given = given or (name == "releases" and chosen)
        for part in chosen:
            if part not in all_of_them:
                parser.error(f"--{name}: {part!r} is none of {', '.join(all_of_them)}")
        setattr(options, name, chosen or list(all_of_them))
    options.alternate = options.quick and not given
    return options


def play(options, part, folder):
    """Plays one part in a process of its own and gives its report."""
    name = "-".join(part)
    out = folder / f"{name}.json"
    command = [sys.executable, "-m", "segments", "--part", json.dumps([*part, str(out)]), "--cells", ",".join(options.cells), "--seed", str(options.seed), "--values", str(folder / "values"), "--programs", options.programs]
    runner = subprocess.Popen(command + (["--quick"] if options.quick else []), cwd=Path(__file__).resolve().parent.parent)
    RUNNERS.add(runner)
    try:
        status = runner.wait(timeout=PART_SECONDS)
    except subprocess.TimeoutExpired:
        status = f"still running after {PART_SECONDS} s"
    finally:
        runner.kill()
        RUNNERS.discard(runner)
    if status:
        return {"seconds": PART_SECONDS, "cells": {cell.replace("-", " "): [0, [f"the part ended with {status}"]] for cell in options.cells}, "tails": {}}
    report = json.loads(out.read_text())
    print(f"played {' '.join(part)} in {report['seconds']:.0f} s", file=sys.stderr, flush=True)
    return report


def main():
    """Plays and reports; the exit status is 0 when every cell passed."""
    options = arguments()
    if options.part:
        die_with_parent()
        release, transport, metadata, out = json.loads(options.part)
        folder = Path(out).with_suffix("")
        folder.mkdir()
        group = Group(release, transport, metadata, options.quick, options.seed, Path(options.values), options.programs, folder)
        Path(out).write_text(json.dumps(group.play([tuple(cell.split("-")) for cell in options.cells])))
        return 0
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: sys.exit("conformance: interrupted"))
    started = time.monotonic()
    parts = [(release, transport, metadata) for transport in options.transports for metadata in options.metadata for release in options.releases]
    if options.alternate:  # each release has every transport and every kind of metadata then, but not every pair of them
        parts = [one for i, one in enumerate(parts) if (i // 2 + i // 4) % 2 == i % 2]
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="segments-") as name, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        folder = Path(name)
        with open(folder / "values", "wb") as file:
            source = random.Random(options.seed)
            for _ in range(5 if options.quick else 258):
                file.write(source.randbytes(MB))
        played = {part: pool.submit(play, options, part, folder) for part in parts}
        try:
            reports = {part: future.result() for part, future in played.items()}
        except BaseException:  # an interruption too must not leave processes behind
            pool.shutdown(wait=False, cancel_futures=True)
            for runner in list(RUNNERS):
                runner.kill()
            raise
    return tell(options, reports, time.monotonic() - started)


def tell(options, reports, seconds):
    """Prints the table, the failures with the ends of the logs, and the closing line."""
    passed = failed = 0
    heads = [f"{user} in {owner}'s" for user, owner in (cell.split("-") for cell in options.cells)]
    print(f"\n{'client in whose segment:':28}" + "".join(f"{head:>18}" for head in heads))
    for part, report in reports.items():
        row = f"{' '.join(part):28}"
        for checks, failures in report["cells"].values():
            good = checks > 0 and not failures
            passed, failed = passed + good, failed + (not good)
            row += f"{f'{checks} checks' if good else f'{len(failures)} FAILED':>18}"
        print(row)
    for part, report in reports.items():
        for cell, (checks, failures) in report["cells"].items():
            for failure in failures[:8]:
                print(f"\nFAILED {' '.join(part)}: {cell}: {failure}")
            if len(failures) > 8:
                print(f"       and {len(failures) - 8} more")
        for log, lines in report["tails"].items():
            if not lines:
                continue
            print(f"\n--- {' '.join(part)} {log}\n    " + "\n    ".join(line[:300] for line in lines))
    print(f"\nsegments: {len(reports)} parts in {seconds:.0f} s, seed {options.seed}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

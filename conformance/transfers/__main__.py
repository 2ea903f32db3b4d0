"""Command line: plays every combination in a process of its own and shows what was seen.

    python3 -m transfers [--quick] [--transports tcp-v2,rdma-1] [--metadata http,p2p] [--executors master,auto] [--pairs real-real,real-go,go-real] [--scenarios tasks,drain,stopped]
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

from .scenarios import SCENARIOS
from .stage import MB, Stage

CHOICES = {
    "transports": ("tcp-v2", "rdma-1"),
    "metadata": ("http", "p2p"),
    "executors": ("master", "auto"),
    "pairs": ("real-real", "real-go", "go-real"),
    "scenarios": tuple(SCENARIOS),
}
PART_SECONDS = 300
RUNNERS = set()


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="conformance/transfers.sh", description="Copies, moves and drains that the master carries out itself.")
    parser.add_argument("--quick", action="store_true", help="one kind of metadata for each pair: what CI runs")
    for name, all_of_them in CHOICES.items():
        parser.add_argument(f"--{name}", default="", help=f"some of {','.join(all_of_them)}")
    parser.add_argument("--release", choices=RELEASES, default=RELEASES[0], help="of the clients")
    parser.add_argument("--jobs", type=int, default=2, help="parts at a time")
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name, all_of_them in CHOICES.items():
        chosen = [part for part in getattr(options, name).split(",") if part]
        for part in chosen:
            if part not in all_of_them:
                parser.error(f"--{name}: {part!r} is none of {', '.join(all_of_them)}")
        setattr(options, name, chosen or list(all_of_them))
    return options


def parts(options):
    """The combinations; where the owner is stopped it must be the master who carries."""
    every = [
        (scenario, pair, transport, metadata, executor)
        for scenario in options.scenarios
        for pair in options.pairs
        for transport in options.transports
        for metadata in options.metadata
        for executor in options.executors
    ]
    if options.quick:  # each pair of values of two columns comes still
        keep = {("real-real", "tcp-v2"): "http", ("real-real", "rdma-1"): "p2p", ("real-go", "tcp-v2"): "p2p", ("real-go", "rdma-1"): "http", ("go-real", "tcp-v2"): "http", ("go-real", "rdma-1"): "p2p"}
        every = [one for one in every if len(options.metadata) == 1 or keep[one[1], one[2]] == one[3]]
        every = [one for one in every if len(options.executors) == 1 or one[4] == ("auto" if one[0] == "stopped" else "master")]
    return every


def play(options, part, folder, number):
    """Plays one part in a process of its own and gives its report."""
    out = folder / f"{number}.json"
    settings = {"quick": options.quick, "values": str(folder / "values"), "programs": options.programs, "release": options.release, "out": str(out), "part": part}
    runner = subprocess.Popen([sys.executable, "-m", "transfers", "--programs", options.programs, "--part", json.dumps(settings)], cwd=Path(__file__).resolve().parent.parent)
    RUNNERS.add(runner)
    try:
        status = runner.wait(timeout=PART_SECONDS)
    except subprocess.TimeoutExpired:
        status = f"still running after {PART_SECONDS} s"
    finally:
        runner.kill()
        RUNNERS.discard(runner)
    if status:
        return {"seconds": PART_SECONDS, "passed": 0, "failures": [f"the part ended with {status}"], "notes": [], "tails": {}}
    return json.loads(out.read_text())


def play_part(settings):
    """The other side of play."""
    die_with_parent()
    scenario, pair, transport, metadata, executor = settings["part"]
    source, target = pair.split("-")
    folder = Path(settings["out"]).with_suffix("")
    folder.mkdir()
    stage = Stage(settings, source, target, transport, metadata, executor, settings["release"], folder)
    Path(settings["out"]).write_text(json.dumps(stage.play(SCENARIOS[scenario])))


def main():
    """Plays and reports; the exit status is 0 when everything was as expected."""
    options = arguments()
    if options.part:
        play_part(json.loads(options.part))
        return 0
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: sys.exit("conformance: interrupted"))
    started, every = time.monotonic(), parts(options)
    with tempfile.TemporaryDirectory(prefix="transfers-") as name, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        folder = Path(name)
        with open(folder / "values", "wb") as file:
            source = random.Random(7)
            for _ in range(64):
                file.write(source.randbytes(MB))
        played = [(part, pool.submit(play, options, part, folder, number)) for number, part in enumerate(every)]
        passed = failed = 0
        try:
            for part, future in played:
                report = future.result()
                good = report["passed"] > 0 and not report["failures"]
                passed, failed = passed + good, failed + (not good)
                seen = f"{report['passed']} checks" if good else f"{len(report['failures'])} FAILED"
                print(f"{part[0]:8} {part[1]:10} {part[2]:7} {part[3]:5} {part[4]:7} {seen:>12} in {report['seconds']:5.1f} s  {', '.join(report['notes'])}", flush=True)
                for failure in report["failures"][:6]:
                    print(f"    FAILED {failure}")
                for log, lines in report["tails"].items():
                    if lines:
                        print(f"    --- {log}\n        " + "\n        ".join(line[:260] for line in lines))
        except BaseException:  # an interruption too must not leave processes behind
            pool.shutdown(wait=False, cancel_futures=True)
            for runner in list(RUNNERS):
                runner.kill()
            raise
    print(f"\ntransfers: {len(every)} parts in {time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

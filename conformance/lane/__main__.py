"""Command line of the lane: plays every run in a process of its own, compares, reports.

    python3 -m lane [--quick] [--lanes 0.3.13,0.3.14,mixed] [--metadata http,p2p] [--scenarios a,b] [--report FILE] [--jobs N]

With --target ours and a single lane and mode it plays that run only; the command line does this to itself.
"""

import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .actors import OURS
from .comparison import Comparison
from .processes import die_with_parent
from .runner import LANES, run

REFERENCE = "reference"
METADATA = ("http", "p2p")
# Quick runs give each lane one metadata mode; over the lanes both occur.
QUICK_METADATA = {"0.3.13": ("http",), "0.3.14": ("p2p",), "mixed": ("http",)}
RUN_SECONDS = 1500
RUNNERS = set()  # the runs in progress; their masters and clients end with them


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="conformance/run.sh", description="Runs the released clients against the C++ masters and this one and compares every answer.")
    parser.add_argument("--quick", action="store_true", help="leave out the slow scenarios and one metadata mode per lane")
    parser.add_argument("--lanes", default=",".join(LANES), help="lanes, by their client release")
    parser.add_argument("--metadata", default="", help="metadata modes: http, p2p")
    parser.add_argument("--scenarios", default="", help="only these scenarios")
    parser.add_argument("--report", default="", help="write a JSON report here")
    parser.add_argument("--jobs", type=int, default=min(4, 2 * (os.cpu_count() or 1)), help="runs at a time; they mostly wait")
    parser.add_argument("--target", choices=(OURS, REFERENCE), help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    return parser.parse_args()


def listed(text):
    """The parts of a comma-separated list."""
    return [part for part in text.split(",") if part]


def play(options, lane, metadata, target, folder):
    """Plays one run in a process of its own and gives its report."""
    out = Path(folder) / f"{lane}-{metadata}-{target}.json"
    command = [sys.executable, "-m", "lane", "--target", target, "--lanes", lane, "--metadata", metadata, "--scenarios", options.scenarios, "--out", str(out)]
    runner = subprocess.Popen(command + (["--quick"] if options.quick else []), cwd=Path(__file__).resolve().parent.parent)
    RUNNERS.add(runner)
    try:
        status = runner.wait(timeout=RUN_SECONDS)
    finally:
        runner.kill()
        RUNNERS.discard(runner)
    if status:
        raise RuntimeError(f"the run {lane}/{metadata}/{target} ended with {status}")
    print(f"played {lane}/{metadata} on {'our master' if target == OURS else 'the C++ master'}", file=sys.stderr, flush=True)
    return json.loads(out.read_text())


def main():
    """Plays, compares and reports; the exit status is 0 when nothing failed."""
    options = arguments()
    if options.target:
        die_with_parent()
        run(listed(options.lanes)[0], options.metadata, options.target, options.quick, listed(options.scenarios), options.out)
        return 0
    for ending in (signal.SIGTERM, signal.SIGINT):  # a shell's background jobs start with SIGINT ignored
        signal.signal(ending, lambda *_: sys.exit("conformance: interrupted"))
    started = time.monotonic()
    pairs = [
        (lane, metadata)
        for lane in listed(options.lanes)
        for metadata in (listed(options.metadata) or (QUICK_METADATA[lane] if options.quick else METADATA))
    ]
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = {(lane, metadata, target): pool.submit(play, options, lane, metadata, target, folder) for lane, metadata in pairs for target in (REFERENCE, OURS)}
        try:
            reports = {name: future.result() for name, future in runs.items()}
        except BaseException:  # an interruption too must not leave runs behind
            pool.shutdown(wait=False, cancel_futures=True)
            for runner in list(RUNNERS):
                runner.kill()
            raise
    comparison = Comparison()
    for lane, metadata in pairs:
        comparison.add(reports[lane, metadata, REFERENCE], reports[lane, metadata, OURS])
    if not options.scenarios:
        comparison.finish()
    tell(comparison, reports, options, time.monotonic() - started)
    return 1 if comparison.failures else 0


def tell(comparison, reports, options, seconds):
    """Prints the tables, the failures with the ends of the logs, and the closing line."""
    print("\n".join(comparison.table()))
    print("\nIntended differences met:")
    for source, cases in comparison.sources().items():
        print(f"  {source}: {', '.join(cases)}")
    for failure in comparison.failures:
        print(f"\nFAILED {failure['where']}\n      {failure['what']}")
    failed = {failure["where"].split(" ", 1)[-1].split("/")[0] for failure in comparison.failures}
    for (lane, metadata, target), report in reports.items():
        for name, scenario in report["scenarios"].items():
            for log, lines in scenario["tails"].items() if name in failed else ():
                if scenario["trouble"] or (target == OURS and log.startswith("master")):
                    print(f"\n--- {lane}/{metadata} {name} {log}\n    " + "\n    ".join(lines))
    if options.report:
        summary = {"seconds": round(seconds, 1), "passed": comparison.passed, "failed": len(comparison.failures), "failures": comparison.failures, "intended": comparison.sources()}
        runs = [{**report, "target": target} for (_, _, target), report in reports.items()]
        Path(options.report).write_text(json.dumps({**summary, "runs": runs}, indent=1, ensure_ascii=False))
    print(f"\nconformance: {len(reports)} runs in {seconds:.0f} s")
    print(f"{comparison.passed} passed, {len(comparison.failures)} failed")


if __name__ == "__main__":
    sys.exit(main())

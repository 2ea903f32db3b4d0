"""Command line: plays every check against the C++ master and ours, one process each, and compares.

    python3 -m upstream CHECKOUT [--master ours|cpp] [--releases 0.3.13,0.3.14] [--report FILE] [--jobs N] [NAMES…]
"""

import argparse
import concurrent.futures
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from lane.actors import OURS
from lane.processes import RELEASES, Processes

from .checks import CHECKS
from .play import own_network, play

CPP = "cpp"
SIDES = {CPP: "C++", OURS: "ours"}


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="conformance/upstream.sh", description="Runs the original's own Python checks against the C++ masters and this one.")
    parser.add_argument("checkout", help="a checkout of the original")
    parser.add_argument("names", nargs="*", help=f"only these checks: {', '.join(CHECKS)}")
    parser.add_argument("--master", choices=tuple(SIDES), help="only against this master, without a comparison")
    parser.add_argument("--releases", default=",".join(RELEASES), help="releases of client and C++ master")
    parser.add_argument("--report", default="", help="write a JSON report here")
    parser.add_argument("--jobs", type=int, default=1, help="checks at a time")
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    for name in options.names:
        if name not in CHECKS:
            parser.error(f"{name} is none of {', '.join(CHECKS)}")
    for name in options.names or CHECKS:
        if not (Path(options.checkout) / CHECKS[name].path).exists():
            parser.error(f"{options.checkout} has no {CHECKS[name].path}")
    return options


def child(options, processes, name, release, side, folder):
    """Plays one check in a process of its own and gives its report."""
    out = Path(folder) / f"{name}-{release}-{side}.json"
    command = [*own_network(), sys.executable, "-m", "upstream", options.checkout, name, "--master", side, "--releases", release, "--out", str(out)]
    status = processes.start(command, out.with_suffix(".log"), cwd=Path(__file__).resolve().parent.parent).wait()
    if status:
        raise RuntimeError(f"{name} {release} {side} ended with {status}: {out.with_suffix('.log').read_text()[-2000:]}")
    report = json.loads(out.read_text())
    print(f"{name} {release} on {SIDES[side]}: {told(report)} in {report['seconds']:.0f} s", file=sys.stderr, flush=True)
    return report


def told(report):
    """Counts as "passed/failed/skipped"."""
    counts = Counter(word for _, word, _ in report["tests"])
    return "/".join(str(counts[word]) for word in ("passed", "failed", "skipped"))


def worse(theirs, ours):
    """The tests that pass against the C++ master and not against ours."""
    words = {test: word for test, word, _ in ours["tests"]}
    return [test for test, word, _ in theirs["tests"] if word == "passed" and words.get(test) != "passed"]


def main():
    """Plays, compares and reports; the exit status is 1 where ours is worse."""
    options = arguments()
    if options.out:
        play(options.checkout, options.names[0], options.releases, options.master, options.out)
        return 0
    sides = [options.master] if options.master else list(SIDES)
    started, processes = time.monotonic(), Processes()
    pairs = [(name, release) for name in options.names or CHECKS for release in options.releases.split(",")]
    with tempfile.TemporaryDirectory(prefix="upstream-") as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        plays = {(name, release, side): pool.submit(child, options, processes, name, release, side, folder) for name, release in pairs for side in sides}
        try:
            reports = {key: future.result() for key, future in plays.items()}
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.end()
            raise
    bad = table(pairs, sides, reports)
    if options.report:
        rows = [{"check": name, "release": release, "master": side, **report} for (name, release, side), report in reports.items()]
        Path(options.report).write_text(json.dumps(rows, indent=1))
    print(f"\nupstream: {len(reports)} runs in {time.monotonic() - started:.0f} s")
    passed = sum(word == "passed" for report in reports.values() for _, word, _ in report["tests"])
    print(f"{passed} passed, {bad} failed")
    return 1 if bad else 0


def table(pairs, sides, reports):
    """Prints the rows, then whatever failed; gives the number of tests in which ours is worse, or without a comparison of those that failed."""
    print(f"{'check':<42} {'release':<8} " + " ".join(f"{SIDES[side] + ' passed/failed/skipped':<28}" for side in sides) + " verdict")
    bad, shown = 0, []
    for name, release in pairs:
        row = [reports[name, release, side] for side in sides]
        found = worse(*row) if len(row) == 2 else [test for test, word, _ in row[0]["tests"] if word == "failed"]
        bad += len(found)
        verdict = ("ours is worse" if len(row) == 2 else "failed") + f" in {len(found)}" if found else "as good" if len(row) == 2 else "passed"
        print(f"{name:<42} {release:<8} " + " ".join(f"{told(report) + ' in ' + str(report['seconds']) + ' s':<28}" for report in row) + f" {verdict}")
        both = [test for test, word, _ in row[0]["tests"] if word == "failed" and len(row) == 2 and test not in found]
        shown += [(f"{name} {release}", row[-1], found)] if found else []
        for test in both:
            print(f"    fails against the C++ master: {test}")
    for title, report, found in shown:
        for test, word, why in report["tests"]:
            if test in found:
                print(f"\nFAILED {title}: {test} {word}\n    " + "\n    ".join(why.splitlines()[-6:]))
        missing = set(found) - {test for test, _, _ in report["tests"]}
        if missing:
            print(f"\nFAILED {title}: never ran: {', '.join(sorted(missing))}")
        for log, lines in report["tails"].items():
            print(f"\n--- {title} {log}\n    " + "\n    ".join(line[:300] for line in lines))
    return bad


if __name__ == "__main__":
    sys.exit(main())

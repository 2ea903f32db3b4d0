"""One run: every chosen scenario on one target master in one lane and one metadata mode. Runs as a process of its own."""

import contextlib
import json
import time
import traceback
from pathlib import Path

from .actors import OURS, Broken, Client, Master
from .processes import Processes, die_with_parent
from .scenarios import SCENARIOS
from .worker import content, digest

# Lane: the C++ master whose answers count, and the releases of the clients that scenarios call A and B.
LANES = {
    "0.3.13": ("0.3.13", "0.3.13", "0.3.13"),
    "0.3.14": ("0.3.14", "0.3.14", "0.3.14"),
    "mixed": ("0.3.14", "0.3.13", "0.3.14"),
}
TAIL_LINES = 15


class Run:
    """What a scenario works with: it starts processes and records what it sees by note(case, value)."""

    def __init__(self, lane, metadata, target, quick, folder):
        self.lane, self.metadata, self.target, self.quick = lane, metadata, target, quick
        self.reference, *self.releases = LANES[lane]
        self.folder = folder
        self.processes = Processes()
        self.cases, self.contents, self.endpoints = [], {}, {}
        self.scenario = ""

    @property
    def kind(self):
        """The kind of master under this run."""
        return OURS if self.target == OURS else self.reference

    @property
    def knows_14(self):
        """Whether the master under this run takes the flags that came with 0.3.14."""
        return self.kind != "0.3.13"

    def master(self, start=True, only_14=None, only_ours=None, **flags):
        """Starts the master under test; only_14 are flags 0.3.13 refuses, only_ours those both C++ masters refuse."""
        if self.knows_14:
            flags.update(only_14 or {})
        if self.kind == OURS:
            flags.update(only_ours or {})
        made = Master(self, self.kind, f"master-{len(self.processes.children)}", flags)
        return made.start() if start else made

    def client(self, name, master, **options):
        """Starts client "A..." of the lane's first release or any other of its second."""
        release = options.pop("release", None) or self.releases[0 if name.startswith("A") else 1]
        return Client(self, name, release, master, **options)

    def pair(self, master, **options):
        """Clients A and B with a segment each."""
        return self.client("A", master, **options), self.client("B", master, **options)

    def content(self, seed, size):
        """An argument standing for size bytes made from seed; answers holding the same bytes read "seed:size"."""
        key = tuple(digest(content(seed, size)))
        self.contents[key] = f"{seed}:{size}"
        return {"$content": [seed, size]}

    def named(self, value):
        """Replaces digests and endpoints in an answer by their names."""
        if isinstance(value, list):
            return [self.named(item) for item in value]
        if isinstance(value, dict) and "$digest" in value:
            size, name = value["$digest"]
            return self.contents.get((size, name), f"foreign:{size}:{name}") if size else ""
        if isinstance(value, dict):
            return {key: self.endpoints.get(item, item) if key == "endpoint" else self.named(item) for key, item in value.items()}
        return value

    def note(self, case, value):
        """Records what was seen under a name that is the same on every master."""
        self.cases.append([f"{self.scenario}/{case}", value])

    def until(self, look, wanted, seconds=20, pause=0.1):
        """Looks until it sees wanted or the time is over; gives what it saw last."""
        deadline = time.monotonic() + seconds
        while True:
            seen = look()
            if seen == wanted or time.monotonic() > deadline:
                return seen
            time.sleep(pause)

    def play(self, name, scenario):
        """Runs one scenario; what breaks it is recorded with the tails of the logs."""
        self.scenario, trouble = name, None
        self.contents.clear(), self.endpoints.clear()
        started = time.monotonic()
        self.folder = self.folder / name
        self.folder.mkdir(parents=True)
        try:
            scenario(self)
        except Broken as error:
            trouble = str(error)
        except Exception:
            trouble = traceback.format_exc(limit=4)
        finally:
            with contextlib.suppress(Exception):
                self.processes.end()
        tails = {log.name: log.read_text(errors="replace").splitlines()[-TAIL_LINES:] for log in sorted(self.folder.glob("*.log"))}
        self.folder = self.folder.parent
        return {"seconds": round(time.monotonic() - started, 1), "trouble": trouble, "tails": tails}


def run(lane, metadata, target, quick, names, out):
    """Plays the scenarios and writes what was seen to the file out; logs go to a folder named like it."""
    die_with_parent()
    one = Run(lane, metadata, target, quick, Path(out).with_suffix(""))
    report = {"lane": lane, "metadata": metadata, "target": target, "scenarios": {}}
    for name, scenario in SCENARIOS.items():
        if (names and name not in names) or not scenario.applies(one):
            continue
        report["scenarios"][name] = one.play(name, scenario.body)
    report["cases"] = one.cases
    Path(out).write_text(json.dumps(report, indent=1))

"""Compares what two masters made of the same scenarios and words the result."""

import json

from .differences import DIFFERENCES, find

WIDTH = 160


class Comparison:
    """Counts over all lanes and modes; add() takes one pair of reports after another."""

    def __init__(self):
        self.passed, self.failures, self.rows = 0, [], []
        self.used, self.seen = set(), set()

    def fail(self, where, text):
        """Counts one failed case."""
        self.failures.append({"where": where, "what": text})

    def add(self, theirs, ours):
        """Compares the C++ master's report with ours."""
        lane, metadata = theirs["lane"], theirs["metadata"]
        where = f"{lane}/{metadata}"
        expected, got = dict(theirs["cases"]), dict(ours["cases"])
        tally = {}
        for side, report in (("C++", theirs), ("ours", ours)):
            for name, scenario in report["scenarios"].items():
                if scenario["trouble"]:
                    self.fail(f"{where} {name}", f"{side} broke off: {scenario['trouble'].strip()}")
        for case in list(expected) + [case for case in got if case not in expected]:
            counts = tally.setdefault(case.split("/")[0], [0, 0, 0])
            counts[self.judge(f"{where} {case}", lane, case, expected, got)] += 1
        for name, (equal, meant, failed) in tally.items():
            self.rows.append([lane, metadata, name, equal, meant, failed, theirs["scenarios"][name]["seconds"], ours["scenarios"].get(name, {}).get("seconds")])

    def judge(self, where, lane, case, expected, got):
        """0: equal, 1: different as meant, 2: failed."""
        entries = find(lane, case)
        self.seen.update((number, lane) for number, _ in entries)
        if case not in expected or case not in got:
            self.fail(where, f"only {'ours' if case in got else 'the C++ master'} came to it")
            return 2
        if expected[case] == got[case]:
            self.passed += 1
            return 0
        for number, entry in entries:
            if entry.theirs == expected[case] and entry.ours == got[case]:
                self.used.add((number, lane))
                self.passed += 1
                return 1
        self.fail(where, f"C++ {shown(expected[case])}\n      ours {shown(got[case])}" + "".join(f"\n      meant ({entry.source}): C++ {entry.theirs!r}, ours {entry.ours!r}" for _, entry in entries))
        return 2

    def finish(self):
        """Fails the entries of the table that no run needed."""
        for number, lane in sorted(self.seen - self.used):
            entry = DIFFERENCES[number]
            self.fail(f"differences, {entry.source}", f"{entry.case!r} never differed as stated in lane {lane}")

    def sources(self):
        """How often each row or section excused a case, by its name."""
        names = {}
        for number, _ in self.used:
            names.setdefault(DIFFERENCES[number].source, []).append(DIFFERENCES[number].case)
        return {source: sorted(set(cases)) for source, cases in sorted(names.items())}

    def table(self):
        """The result as lines of text."""
        head = ["lane", "metadata", "scenario", "equal", "as meant", "failed", "s C++", "s ours"]
        rows = [head] + [[str(cell) for cell in row] for row in self.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def shown(value):
    """An answer on one line of bounded length."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= WIDTH else text[:WIDTH] + f"... ({len(text)} characters)"

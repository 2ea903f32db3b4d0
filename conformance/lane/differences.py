"""The differences from the C++ masters that are meant, one entry each.

Every entry names its source: "row N" is a row of docs/differences-from-upstream.md, "V14 N" a section of the comparison of the releases 0.3.13
and 0.3.14 (ours behaves as 0.3.14 in every lane). An entry holds for the lanes it lists, and only for exactly the two answers given. One that a lane
did not need is an error: the table may not outlive what it excuses.
"""

from typing import Any, NamedTuple

OLD, NEW, MIXED = ("0.3.13",), ("0.3.14", "mixed"), ("mixed",)
BOTH = OLD + NEW


class Holds:
    """Stands for any answer that a function accepts, where the C++ master itself has no single one."""

    def __init__(self, text, accepts):
        self.text, self.accepts = text, accepts

    def __eq__(self, other):
        try:
            return bool(self.accepts(other))
        except (TypeError, IndexError, KeyError):
            return False

    __hash__ = None

    def __repr__(self):
        return self.text


class Difference(NamedTuple):
    """One intended difference."""

    lanes: tuple
    case: str
    theirs: Any
    ours: Any
    source: str
    why: str


MB = 1 << 20
LAST_TEN = [f"k{i}" for i in range(4, 14)]
EDITED = Holds("the operator's file with one entry more", lambda text: text.startswith("# kept by the operator\n") and "10MB" in text and "tenant-c" in text)
REWRITTEN = Holds("a file written anew", lambda text: "#" not in text and "10485760" in text)

DIFFERENCES = [
    Difference(OLD, "quota/left", Holds("ten of the keys, in no order of age", lambda keys: len(keys) == 10 and keys != LAST_TEN), LAST_TEN, "row 1", "the oldest make room"),
    Difference(NEW, "quota/over the quota", [[-1700] * 4, 10 * MB], [[0] * 4, 10 * MB], "row 1", "new pages replace the tenant's oldest"),
    Difference(NEW, "quota/left", [f"k{i}" for i in range(10)], LAST_TEN, "row 1", "new pages replace the tenant's oldest"),
    Difference(OLD, "exceeded_untouched/can never fit", [-1700, 0], [-1700, 8 * MB], "row 2", "a refusal destroys nothing"),
    Difference(OLD, "exceeded_untouched/left", [0] * 8, [1] * 8, "row 2", "a refusal destroys nothing"),
    Difference(OLD, "outgrown_quota/two copies asked, one made", [True, 0, -1700, 0], [True, 0, -1700, 500000], "row 2", "a refusal destroys nothing"),
    Difference(BOTH, "oversized/left", [0] + [1] * 7, [1] * 8, "row 2", "a write that can never fit touches nothing"),
    Difference(OLD, "quota/outgrown while all are leased", [-1700, -704, 9 * MB], [-1700, MB, 10 * MB], "row 3", "the old value stays"),
    Difference(NEW, "outgrown_quota/fits once the old one is gone", [-1700, "", 0], [0, "k600:600000", 600000], "row 3", "admitted when it fits without the old value"),
    Difference(BOTH, "outgrown_quota/never fits", [-1700, 0, 0], [-1700, 1, 600000], "row 3", "the old value stays"),
    Difference(BOTH, "outgrown/what is left", [0, "", 4 * MB, 4 * MB], [1, f"first:{4 * MB}", 4 * MB, 4 * MB], "row 3", "the old value stays when memory lacks"),
    Difference(BOTH, "offloaded/upsert", [-200, ""], [0, "other:102400"], "row 3", "an object that is only on disk is written anew, not lost"),
    Difference(BOTH, "offloaded/removed", [0, "", [[]], [0, 0], [1, 0, 0, 0, 0, 1, 1, 1]], [0, "", [[]], [0, 0], [1, 1, 0, 0, 0, 1, 1, 1]], "row 3", "an object that is only on disk is written anew, not lost"),
    Difference(BOTH, "edited/after", [-1701, 10 * MB], [0, 12 * MB], "row 4", "a saved policy is in force a moment later"),
    Difference(BOTH, "admin/file after PUT", REWRITTEN, EDITED, "row 5", "the file is edited in place"),
    *[Difference(BOTH, f"broken_policy/exit status {number}", -6, 1, "row 7", "exit 1 and one line") for number in (0, 1, 2, 3, "of a bad value")],
    Difference(BOTH, "drain_redundant/end", [["RUNNING", 1, 0], "DRAINING"], [["SUCCEEDED", 0, 0], "DRAINED"], "row 16", "a copy that every target has is dropped"),
    Difference(
        BOTH,
        "drain_redundant/where",
        [["A COMPLETE", "B COMPLETE"], "v:102400", "v:102400"],
        [["B COMPLETE"], "v:102400", "v:102400"],
        "row 16",
        "a copy that every target has is dropped",
    ),
    Difference(BOTH, "full/something can go: first try", -200, 0, "row 21", "a put waits a moment for the evictor"),
    Difference(MIXED, "batches/clear", [], ["b3"], "V14 4", "either form of BatchReplicaClear is understood"),
    Difference(MIXED, "batches/left", [0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1], "V14 4", "either form of BatchReplicaClear is understood"),
    Difference(OLD, "groups/new member of a leased group", [0, 0], [0, -706], "V14 7.3", "a group is leased as one"),
    Difference(OLD, "groups/after the lease", [0, 0, -704], [0, 0, 0], "V14 7.3", "a group is leased as one"),
    Difference(
        OLD,
        "replicas/upsert of a leased one",
        ["v:102400", 0, ["A COMPLETE", "B COMPLETE"], "w:102400"],
        ["v:102400", 0, ["B COMPLETE"], "w:102400"],
        "V14 7.2",
        "what a reader holds is not written over",
    ),
    Difference(OLD, "stalled/size", -704, -703, "V14 6", "a silent client is suspected before it is dropped"),
    Difference(OLD, "stalled/segments", 1, 2, "V14 6", "a silent client is suspected before it is dropped"),
    Difference(OLD, "stalled/upsert of the same size", 0, -1010, "V14 6", "its memory cannot be written now"),
    Difference(OLD, "stalled/remove", [-704, 0], [0, 1], "V14 6", "its objects can be removed"),
    Difference(
        OLD,
        "stalled/back reads",
        ["w:10240", "w:10240", "w:20480", 0, ["B COMPLETE"], "v:10240"],
        ["v:10240", "v:10240", "w:20480", 0, ["A COMPLETE", "B COMPLETE"], "v:10240"],
        "V14 6",
        "its objects come back with it",
    ),
]


def find(lane, case):
    """The entries for a case in a lane, with their positions."""
    return [(number, entry) for number, entry in enumerate(DIFFERENCES) if entry.case == case and lane in entry.lanes]

"""Runs one unittest file of the original and writes a line of JSON for every outcome: {"test": name, "outcome": word, "why": text}.

    recorder.py FILE CLASS OUT [arguments of FILE]

CLASS is the only class of the file to run, or "" for all.

Run by the Python of a release, so it uses the standard library only. A test's start is written too, so that one which ends the process is known.
"""

import importlib.util
import json
import os
import sys
import unittest
from pathlib import Path


class Recorder(unittest.TextTestResult):
    """Writes each outcome as it comes."""

    out = None

    def write(self, test, outcome, why=""):
        # "Class.test", or "setUpClass (module.Class)" where the class could not start
        name = test.id().split(".", 1)[-1] if "(" not in test.id() else test.id()
        print(json.dumps({"test": name, "outcome": outcome, "why": why}), file=self.out, flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.write(test, "started")

    def addSuccess(self, test):
        super().addSuccess(test)
        self.write(test, "passed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.write(test, "failed", self.failures[-1][1][-600:])

    def addError(self, test, err):
        super().addError(test, err)
        self.write(test, "failed", self.errors[-1][1][-600:])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.write(test, "failed", str(err[1])[-600:])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write(test, "skipped", reason)


def main():
    file, name, out, *arguments = sys.argv[1:]
    Recorder.out = open(out, "w")
    sys.argv = [file, *arguments]
    sys.path.insert(0, str(Path(file).parent))
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # processes that the check spawns find its functions by this name
    spec.loader.exec_module(module)
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromTestCase(getattr(module, name)) if name else loader.loadTestsFromModule(module)
    unittest.TextTestRunner(verbosity=2, resultclass=Recorder).run(tests)
    sys.stdout.flush()
    os._exit(0)  # the outcome is written; the client's destructors may wait for a master that is gone


if __name__ == "__main__":
    main()

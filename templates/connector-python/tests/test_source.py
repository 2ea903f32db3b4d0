"""The source by itself: no process, no gRPC."""

import contextlib
import os
import pathlib
import sqlite3
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import mooncake_connector as mc
from change_source import put
from source import SQLiteSource


class Heard:
    """What a watch talks to, kept for the test."""

    def __init__(self):
        self.events, self.over = [], threading.Event()

    def snapshot(self, document):
        self.add(document.content)

    def unavailable(self, why):
        self.add(why.kind)

    def add(self, event):
        if not self.events or self.events[-1] != event:
            self.events.append(event)

    def wait(self, seconds):
        return self.over.wait(seconds)


class SourceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "policies.db")
        put(self.path, "blue", b"one")

    def source(self, path=None, **options):
        return SQLiteSource(mc.Config(self.path if path is None else path, "blue", options))

    def kind(self, source):
        with self.assertRaises(mc.Unavailable) as caught:
            source.load()
        self.assertIn(os.path.abspath(source.config.uri), caught.exception.reason)
        return caught.exception.kind

    def test_configuration(self):
        for path, options, field in (
            ("", {}, "uri"),
            ("x\0y", {}, "uri"),
            ("x", {"poll": "often"}, "options.poll"),
            ("x", {"poll": "0"}, "options.poll"),
            ("x", {"poll": "nan"}, "options.poll"),
            ("x", {"pol": "1"}, "options.pol"),
        ):
            with self.subTest(path=path, options=options), self.assertRaises(mc.ConfigError) as caught:
                self.source(path, **options)
            self.assertEqual(list(caught.exception.notes), [field])

    def test_load(self):
        self.assertEqual(self.source().load().content, b"one")
        with contextlib.closing(sqlite3.connect(self.path)) as db, db:
            db.execute("UPDATE policy SET document = replace(document, 'one', 'zw\u00f6lf')")  # makes it text
        self.assertEqual(self.source().load().content, "zw\u00f6lf".encode())

    def test_no_document(self):
        other = self.path + ".other"
        self.assertIs(self.kind(self.source(other)), mc.Kind.UNREACHABLE)
        self.assertFalse(os.path.exists(other), "a mistyped path makes a database")
        os.mkdir(other)
        self.assertIs(self.kind(self.source(other)), mc.Kind.INVALID)
        garbage = self.path + ".garbage"
        pathlib.Path(garbage).write_bytes(b"\x00\x01not a database" * 1000)
        self.assertIs(self.kind(self.source(garbage)), mc.Kind.INVALID)
        with contextlib.closing(sqlite3.connect(self.path)) as db, db:
            db.execute("DELETE FROM policy")
        self.assertIs(self.kind(self.source()), mc.Kind.ABSENT)
        with contextlib.closing(sqlite3.connect(self.path)) as db, db:
            db.execute("DROP TABLE policy")
        self.assertIs(self.kind(self.source()), mc.Kind.ABSENT)

    def test_save(self):
        source = self.source()
        first = source.load().revision
        second = source.save(b"two", first)
        self.assertEqual(source.load(), mc.Document(b"two", second))
        for expected in (first, ""):
            with self.assertRaises(mc.Conflict):
                source.save(b"three", expected)
        self.assertEqual(source.load().content, b"two")
        fresh = SQLiteSource(mc.Config(self.path, "green", {}))
        with self.assertRaises(mc.Conflict):
            fresh.save(b"x", first)
        fresh.save(b"green", "")
        self.assertEqual(fresh.load().content, b"green")
        self.assertEqual(source.load().content, b"two")

    def test_nothing_is_lost(self):
        """Many writers count in one document."""
        put(self.path, "blue", b"0")
        each, failures = 20, []

        def count():
            source, done = self.source(), 0
            while done < each:
                document = source.load()
                try:
                    source.save(b"%d" % (int(document.content) + 1), document.revision)
                    done += 1
                except mc.Conflict:
                    pass
                except Exception as error:
                    failures.append(error)
                    return

        writers = [threading.Thread(target=count) for _ in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.source().load().content, b"%d" % (4 * each))

    def test_locked(self):
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.execute("BEGIN EXCLUSIVE")
            began = time.monotonic()
            self.assertIs(self.kind(self.source()), mc.Kind.UNREACHABLE)
            self.assertLess(time.monotonic() - began, 9)

    def test_watch(self):
        source, heard = self.source(poll="0.05"), Heard()
        watch = threading.Thread(target=source.watch, args=(heard,))
        watch.start()

        def until(event):
            end = time.monotonic() + 10
            while not heard.events or heard.events[-1] != event:
                self.assertLess(time.monotonic(), end, f"{event} did not come, heard {heard.events}")
                time.sleep(0.005)

        try:
            until(b"one")
            put(self.path, "blue", b"two")
            until(b"two")
            os.rename(self.path, self.path + ".away")
            until(mc.Kind.UNREACHABLE)
            put(self.path, "blue", b"three")  # another file under the name
            until(b"three")
            with contextlib.closing(sqlite3.connect(self.path)) as db, db:
                db.execute("DELETE FROM policy")
            until(mc.Kind.ABSENT)
            put(self.path, "blue", b"three")
            until(b"three")
        finally:
            heard.over.set()
            watch.join(5)
        self.assertFalse(watch.is_alive())


if __name__ == "__main__":
    unittest.main()

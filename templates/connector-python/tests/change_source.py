#!/usr/bin/env python3
"""Changes the source from outside, the way other people's tools do: for the conformance kit.

usage: change_source.py DATABASE CLUSTER set|delete|break|restore|second

The kit tells what to do by the last argument; documents come on standard input.
"""

import contextlib
import os
import sqlite3
import sys


def put(path: str, cluster: str, document: bytes) -> None:
    """Stores a document."""
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS policy (cluster_id TEXT PRIMARY KEY, document BLOB NOT NULL)")
        db.execute("INSERT OR REPLACE INTO policy (cluster_id, document) VALUES (?, ?)", (cluster, document))


def main() -> int:
    """Does what the kit asks for; 3 says that it is not known here."""
    path, cluster, verb = sys.argv[1:]
    if verb == "set":
        put(path, cluster, sys.stdin.buffer.read())
    elif verb == "delete":
        with contextlib.closing(sqlite3.connect(path, timeout=10)) as db, db:
            db.execute("DELETE FROM policy WHERE cluster_id = ?", (cluster,))
    elif verb == "break":
        os.rename(path, path + ".away")
        os.mkdir(path)
    elif verb == "restore":
        os.rmdir(path)
        os.rename(path + ".away", path)
    elif verb == "second":
        put(path + ".second", cluster, sys.stdin.buffer.read())
        print(path + ".second")
    else:
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())

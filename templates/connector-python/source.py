"""The policy in a row of an SQLite database: the part of the template that is yours to replace.

    CREATE TABLE policy (cluster_id TEXT PRIMARY KEY, document BLOB NOT NULL)

The URI is the path of the database file, the row is the one of the master's cluster id. Any tool may
change the row: the revision is a hash of the document, and a save compares and writes in one
transaction. A database server instead of a file would look the same.
"""

import contextlib
import os
import pathlib
import sqlite3

from mooncake_connector import (
    MAX_DOCUMENT,
    Config,
    ConfigError,
    Conflict,
    Description,
    Document,
    Kind,
    ReadOnly,
    Source,
    Unavailable,
    Watching,
)

# How long somebody else may lock the database, in seconds.
BUSY = 3.0
# After how many looks without a visible change the row is read all the same.
THOROUGH = 25


class SQLiteSource(Source):
    """The policy of one cluster in one database file."""

    description = Description(
        name="sqlite",
        version="1.0.0",
        writable=True,
        watches=False,
        options_schema={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "poll": {"type": "string", "default": "0.2", "description": "how often to look for changes, in seconds, 0.05 to 3600"}
            },
        },
    )

    def __init__(self, config: Config):
        super().__init__(config)
        notes = {}
        if not config.uri or "\0" in config.uri:
            notes["uri"] = "the sqlite connector requires a non-empty uri: the path of the database file"
        self._path = os.path.abspath(config.uri)
        self._cluster = config.cluster_id
        self.poll = 0.2
        for name, value in config.options.items():
            if name != "poll":
                notes[f"options.{name}"] = "unknown option; the sqlite connector has the option poll"
                continue
            try:
                self.poll = float(value)
            except ValueError:
                self.poll = -1.0
            if not 0.05 <= self.poll <= 3600:
                notes["options.poll"] = f"{value!r} is not a number of seconds from 0.05 to 3600, like 0.2"
        if notes:
            raise ConfigError(notes)

    def load(self) -> Document:
        with self._database() as db:
            return self._read(db)

    def save(self, content: bytes, expected: str) -> str:
        with self._database(writing=True) as db:
            db.execute("BEGIN IMMEDIATE")  # from here on nobody else writes
            try:
                now = self._read(db).revision
            except Unavailable as why:
                if why.kind != Kind.ABSENT:
                    raise
                now = ""
            if now != expected:
                raise Conflict(f"{self._path}: it holds revision {now or 'none'}, expected was {expected or 'none'}")
            db.execute("CREATE TABLE IF NOT EXISTS policy (cluster_id TEXT PRIMARY KEY, document BLOB NOT NULL)")
            db.execute("INSERT OR REPLACE INTO policy (cluster_id, document) VALUES (?, ?)", (self._cluster, content))
            db.execute("COMMIT")
        return Document.hashed(content).revision

    def watch(self, watching: Watching) -> None:
        while True:
            try:
                with self._database() as db:
                    if self._follow(db, watching):
                        return
            except Unavailable as why:
                watching.unavailable(why)
            if watching.wait(self.poll):
                return

    def _follow(self, db: sqlite3.Connection, watching: Watching) -> bool:
        """Watches as long as the file is the same one; True when the watch is to end."""
        seen, looks, file = None, 0, self._identity()
        while self._identity() == file:
            version = db.execute("PRAGMA data_version").fetchone()[0]  # changes when somebody else has written
            looks += 1
            if version != seen or looks >= THOROUGH:
                seen, looks = version, 0
                try:
                    watching.snapshot(self._read(db))
                except Unavailable as why:
                    watching.unavailable(why)
            if watching.wait(self.poll):
                return True
        return False

    def _identity(self) -> tuple:
        try:
            info = os.stat(self._path)
        except OSError as error:
            raise self._unavailable(error) from error
        return info.st_dev, info.st_ino

    @contextlib.contextmanager
    def _database(self, writing: bool = False):
        """The open database. What goes wrong with it is raised in the words of the contract."""
        try:
            # mode=rw: a mistyped path must not make an empty database.
            uri = pathlib.Path(self._path).as_uri() + "?mode=rw"
            with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=BUSY, isolation_level=None)) as db:
                yield db
        except sqlite3.Error as error:
            if writing and "readonly database" in str(error):
                raise ReadOnly(f"{self._path}: {error}") from error
            raise self._unavailable(error) from error

    def _read(self, db: sqlite3.Connection) -> Document:
        try:
            row = db.execute(
                "SELECT length(CAST(document AS BLOB)), CASE WHEN length(CAST(document AS BLOB)) <= ? THEN CAST(document AS BLOB) END"
                " FROM policy WHERE cluster_id = ?",
                (MAX_DOCUMENT, self._cluster),
            ).fetchone()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            row = None
        if row is None or row[0] is None:
            raise Unavailable(Kind.ABSENT, f"{self._path}: the table policy holds no document for cluster {self._cluster!r}")
        if row[0] > MAX_DOCUMENT:
            raise Unavailable(Kind.INVALID, f"{self._path}: the document has {row[0]} bytes, at most {MAX_DOCUMENT} can be carried")
        return Document.hashed(bytes(row[1]))

    def _unavailable(self, error: Exception) -> Unavailable:
        """What an error of the database or the file system means."""
        if not os.path.exists(self._path):
            return Unavailable(Kind.UNREACHABLE, f"{self._path}: no such file")
        if os.path.isdir(self._path):
            return Unavailable(Kind.INVALID, f"{self._path}: it is a folder")
        if isinstance(error, PermissionError) or not os.access(self._path, os.R_OK):
            return Unavailable(Kind.AUTH, f"{self._path}: permission denied")
        damaged = any(words in str(error) for words in ("not a database", "malformed"))
        return Unavailable(Kind.INVALID if damaged else Kind.UNREACHABLE, f"{self._path}: {error}")

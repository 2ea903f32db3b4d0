"""What the author of a connector writes, and the words for it."""

import dataclasses
import enum
import hashlib
import typing

# Largest document, in bytes, that can be carried.
MAX_DOCUMENT = 64 << 20


@dataclasses.dataclass(frozen=True)
class Description:
    """What a connector is; always the same."""

    # For people: "file", "etcd".
    name: str
    # Of the connector, free form.
    version: str
    # Source.save can succeed.
    writable: bool = False
    # Changes are noticed by themselves, rather than by looking now and then.
    watches: bool = False
    # JSON Schema of Config.options, as a dictionary.
    options_schema: dict = dataclasses.field(default_factory=dict)
    # A source without a document at the start of the master means an empty policy (nobody may
    # write). Otherwise the master does not start.
    absent_is_empty: bool = False


@dataclasses.dataclass(frozen=True)
class Config:
    """Names the source."""

    # The value of the master's flag --tenant_quota_connector_uri.
    uri: str
    # The master's cluster id, for sources that several clusters share.
    cluster_id: str
    # Of --tenant_quota_connector_options.
    options: dict


@dataclasses.dataclass(frozen=True)
class Document:
    """A document as it is at the source."""

    # Byte for byte, at most MAX_DOCUMENT of them. Not checked here: the master does.
    content: bytes
    # Opaque to the master, never empty, and another one for another content.
    revision: str

    @classmethod
    def hashed(cls, content: bytes) -> "Document":
        """A document whose revision is its SHA-256: right for sources that have none of their own."""
        return cls(content, hashlib.sha256(content).hexdigest())


class Kind(enum.Enum):
    """What keeps a document away."""

    UNREACHABLE = "unreachable"  # the source does not answer
    ABSENT = "absent"  # the source answers and holds no document
    AUTH = "auth"  # the source refuses us
    INVALID = "invalid"  # what is there can't be a document
    PERMANENT = "permanent"  # it will not get better without a person


class Unavailable(Exception):
    """There is no document to be had. The reason is for people and names the source."""

    def __init__(self, kind: Kind, reason: str):
        super().__init__(reason)
        self.kind, self.reason = kind, reason


class Conflict(Exception):
    """Save found another revision than the expected one. The text says which."""


class ReadOnly(Exception):
    """This source can't be written. The text says why."""


class ConfigError(Exception):
    """Refuses a configuration: what is wrong by field, "uri", "cluster_id" or "options.NAME"."""

    def __init__(self, notes: dict):
        super().__init__("; ".join(f"{field}: {message}" for field, message in notes.items()))
        self.notes = notes


class Watching(typing.Protocol):
    """What Source.watch talks to."""

    def snapshot(self, document: Document) -> None:
        """This is the document now. Saying the same twice is harmless."""

    def unavailable(self, why: Unavailable) -> None:
        """There is no document to be had now."""

    def wait(self, seconds: float) -> bool:
        """Waits so long; True at once when the watch is to end."""


class Source:
    """Where the document is, under one configuration. A subclass implements description, load, and where it can save and watch.

    The constructor takes a Config, raises ConfigError for a bad one and must not wait for the
    source. A new configuration makes a new object; the former is closed when nobody uses it any
    more. Methods may be called from several threads at once.
    """

    description: Description
    # How often the default watch looks, in seconds.
    poll = 1.0

    def __init__(self, config: Config):
        self.config = config

    def load(self) -> Document:
        """Reads the document as it is at the source now, not from a cache, or raises Unavailable. Any other exception
        counts as unreachable. Ends within ten seconds."""
        raise NotImplementedError

    def save(self, content: bytes, expected: str) -> str:
        """Replaces the document if its revision is still the expected one, "" creates it where there is none; returns
        the new revision when it is stored durably. Raises Conflict, ReadOnly or Unavailable, and then has changed nothing."""
        raise ReadOnly(f"the {self.description.name} connector does not write")

    def watch(self, watching: Watching) -> None:
        """Tells what happens to the document until watching.wait says that it is to end; begins with what there is."""
        while True:
            try:
                watching.snapshot(self.load())
            except Unavailable as why:
                watching.unavailable(why)
            except Exception as error:  # a source that fails in a way nobody thought of must not end the watch
                watching.unavailable(Unavailable(Kind.UNREACHABLE, f"{type(error).__name__}: {error}"))
            if watching.wait(self.poll):
                return

    def close(self) -> None:
        """Lets go of everything."""

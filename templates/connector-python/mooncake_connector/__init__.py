"""The contract between a Mooncake Store master and a tenant-quota connector, for Python.

Write a class like SQLiteSource in source.py and hand it to serve(). Everything about processes,
gRPC, TLS, heartbeats and logging is done here.
"""

from . import process  # first: takes standard output for the contract  # noqa: F401
from .contract import (
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
from .serving import serve

__all__ = [
    "MAX_DOCUMENT", "Config", "ConfigError", "Conflict", "Description", "Document", "Kind", "ReadOnly", "Source",
    "Unavailable", "Watching", "serve",
]  # fmt: skip

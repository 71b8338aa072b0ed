"""Vectors by passage, shared by all Projects of this machine.

Embedding is what an index costs, so a passage is embedded once, whatever Project, path of history or
clone it comes back in. A cache and nothing more: losing it costs time only, so anything that is wrong
with it is a miss.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

import numpy as np

from client.domain.embedding import PassageVectors
from client.index.files import private_directory

DEFAULT_BYTES: Final = 1 << 30
_HEADER: Final = struct.Struct("<III")
_CHECK: Final = 8
_BATCH: Final = 400
_DAY: Final = 86_400_000
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS vectors (
    fingerprint TEXT NOT NULL, passage BLOB NOT NULL, value BLOB NOT NULL, size INTEGER NOT NULL,
    used_at INTEGER NOT NULL, PRIMARY KEY (fingerprint, passage)
);
CREATE INDEX IF NOT EXISTS vectors_used ON vectors (used_at, size);
"""

_CIRCUMSTANCES: Final = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_NOMEM,
)
_NOT_WRITTEN: Final = (
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
)

T = TypeVar("T")


def passage_hash(passage: str) -> str:
    """Return the hash that a passage is known by, 32 hex digits."""
    return hashlib.sha256(passage.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class VectorCache:
    """A SQLite file of vectors. Thread-safe; no method raises for what is wrong with the file.

    ``now`` returns epoch milliseconds; it orders what to forget first.
    """

    def __init__(self, path: Path, now: Callable[[], int], limit: int = DEFAULT_BYTES) -> None:
        self._path = path
        self._now = now
        self._limit = limit
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None

    def get_many(self, fingerprint: str, passages: Sequence[str]) -> dict[str, PassageVectors]:
        """Return the vectors known for passage hashes; the others are left out."""

        def read(connection: sqlite3.Connection) -> dict[str, PassageVectors]:
            found: dict[str, PassageVectors] = {}
            for start in range(0, len(passages), _BATCH):
                keys = [bytes.fromhex(passage) for passage in passages[start : start + _BATCH]]
                marks = ",".join("?" * len(keys))
                rows = connection.execute(
                    f"SELECT passage, value, used_at FROM vectors "  # noqa: S608 - only question marks
                    f"WHERE fingerprint = ? AND passage IN ({marks})",
                    (fingerprint, *keys),
                ).fetchall()
                for key, value, _ in rows:
                    if (vectors := _decode(value)) is not None:
                        found[bytes(key).hex()] = vectors
                self._touch(connection, fingerprint, [(bytes(key), used) for key, _, used in rows])
            return found

        return self._guarded(read, {})

    def put_many(self, fingerprint: str, items: Mapping[str, PassageVectors]) -> None:
        """Remember vectors by passage hash."""

        def write(connection: sqlite3.Connection) -> None:
            now = self._now()
            values = [(bytes.fromhex(key), _encode(vectors)) for key, vectors in items.items()]
            with connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)",
                    [(fingerprint, key, value, len(value), now) for key, value in values],
                )

        if items:
            self._guarded(write, None)

    def prune(self) -> None:
        """Forget what was unused longest, until the rest fits the limit."""

        def cut(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute(
                    "DELETE FROM vectors WHERE rowid IN (SELECT rowid FROM (SELECT rowid, SUM(size) OVER "
                    "(ORDER BY used_at DESC, rowid DESC) AS total FROM vectors) WHERE total > ?)",
                    (self._limit,),
                )
            # A script, because it frees one page a step and `execute` takes one step of what has no rows.
            connection.executescript("PRAGMA incremental_vacuum")

        self._guarded(cut, None)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._drop()

    def _touch(
        self, connection: sqlite3.Connection, fingerprint: str, rows: Sequence[tuple[bytes, int]]
    ) -> None:
        now = self._now()
        # A day's precision is enough, and spares a write for most reads.
        old = [(now, fingerprint, key) for key, used in rows if abs(now - used) > _DAY]
        if old:
            with connection:
                connection.executemany(
                    "UPDATE vectors SET used_at = ? WHERE fingerprint = ? AND passage = ?", old
                )

    def _guarded(self, action: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        with self._lock:
            for _ in range(2):
                try:
                    return action(self._open())
                except sqlite3.DatabaseError as error:
                    if _may_be_good(error):
                        return otherwise
                    self._discard()  # And once more, on an empty file.
        return otherwise

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and _inode(self._path) != self._inode:
            self._drop()  # Somebody deleted or replaced the file.
        if self._connection is None:
            try:
                private_directory(self._path.parent)
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            except OSError as error:
                raise sqlite3.OperationalError(str(error)) from error
            self._inode = _inode(self._path)
            connection = sqlite3.connect(self._path, timeout=0.1, check_same_thread=False)
            try:
                # One process has the file to itself. So no index of the log is shared through a mapped
                # file, reading which would end the process when somebody cut it short.
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.executescript(_SCHEMA)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _discard(self) -> None:
        """Delete the file; another one is made with the next use."""
        self._drop()
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _may_be_good(error: sqlite3.DatabaseError) -> bool:
    """Tell whether the file may be whole although it could not be used: locked, read-only, no room."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # Ours: the place cannot be written.
        return isinstance(error, sqlite3.OperationalError)
    return code & 0xFF in _CIRCUMSTANCES or code in _NOT_WRITTEN


def _encode(vectors: PassageVectors) -> bytes:
    content = b"".join(
        (
            _HEADER.pack(len(vectors.pooled), *vectors.tokens.shape),
            np.ascontiguousarray(vectors.pooled, np.float32).tobytes(),
            np.ascontiguousarray(vectors.tokens, np.int8).tobytes(),
            np.ascontiguousarray(vectors.scales, np.float16).tobytes(),
        )
    )
    return hashlib.blake2b(content, digest_size=_CHECK).digest() + content


def _decode(value: object) -> PassageVectors | None:
    """Return the vectors of a row, or nothing when it is not what was written."""
    if not isinstance(value, bytes) or len(value) < _CHECK + _HEADER.size:
        return None
    check, content = value[:_CHECK], memoryview(value)[_CHECK:]
    if hashlib.blake2b(content, digest_size=_CHECK).digest() != check:
        return None
    dimensions, count, token_dimensions = _HEADER.unpack_from(content)
    sizes = (dimensions * 4, count * token_dimensions, count * 2)
    if len(content) != _HEADER.size + sum(sizes):
        return None
    first = _HEADER.size + sizes[0]
    second = first + sizes[1]
    return PassageVectors(
        pooled=np.frombuffer(content[_HEADER.size : first], np.float32),
        tokens=np.frombuffer(content[first:second], np.int8).reshape(count, token_dimensions),
        scales=np.frombuffer(content[second:], np.float16),
    )

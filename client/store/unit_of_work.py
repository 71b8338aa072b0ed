"""The client's one database and its transactions.

::

    with store.write() as uow:      # one writer at a time; commits at the end or leaves no trace
        uow.drafts.add(draft)
        uow.touch(project_id, {resource_id})
    with store.read() as uow:       # one consistent state; cannot write
        uow.projects.all()

The network, embedding and index work stay outside of transactions.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time_ns
from typing import Final

from sqlalchemy import Connection

from client.store.account import AccountRepository, MetaRepository, SyncStateRepository
from client.store.activations import ActivationStateRepository, RunRepository
from client.store.change_log import Change, ChangeLog
from client.store.drafts import DraftRepository
from client.store.engine import database_errors, read_engine, write_engine
from client.store.evaluation_cases import CaseRepository
from client.store.evaluation_corpora import CorpusRepository
from client.store.migrating import copy_database
from client.store.opening import damage_marker, open_database
from client.store.outbox import OutboxRepository
from client.store.projects import BindingRepository, ProjectRepository
from client.store.published import PublishedRepository
from shared_schema.errors import ErrorCode, InterleafError

WRITER_WAIT_SECONDS: Final = 30.0
"""How long a writer waits for another one of this process, such as the installation of a snapshot."""


class UnitOfWork:
    """An open transaction with a repository for each aggregate."""

    def __init__(self, connection: Connection, changes: ChangeLog | None) -> None:
        self.connection = connection
        self.meta = MetaRepository(connection)
        self.account = AccountRepository(connection)
        self.projects = ProjectRepository(connection)
        self.published = PublishedRepository(connection)
        self.drafts = DraftRepository(connection)
        self.outbox = OutboxRepository(connection)
        self.bindings = BindingRepository(connection)
        self.sync_state = SyncStateRepository(connection)
        self.runs = RunRepository(connection)
        self.activation_states = ActivationStateRepository(connection)
        self.cases = CaseRepository(connection)
        self.corpora = CorpusRepository(connection)
        self._changes = changes
        self._touched: set[str] = set()

    def touch(self, project_id: str, resource_ids: Collection[str] | None = None) -> int:
        """Raise a Project's projection version, because what it shows changes; return the new one.

        ``resource_ids`` are the resources that changed, in their published state or by a Draft.
        Leave them out when any may have, as after a snapshot or a change of access.
        """
        if self._changes is None:
            raise RuntimeError("what a Project shows is changed by writing transactions only")
        version = self.projects.raise_version(project_id)
        self._touched.add(project_id)
        ids = None if resource_ids is None else frozenset(resource_ids)
        self._changes.note(project_id, Change(version, ids))
        return version

    def touched(self, project_id: str) -> bool:
        """Tell whether this transaction changed what the Project shows."""
        return project_id in self._touched


class Store:
    """One SQLite file, opened and migrated; shared by all threads of the daemon.

    Raises ``daemon_too_old`` for the file of a newer release, and ``database_corrupt`` after it set
    a damaged file aside.
    """

    def __init__(self, path: Path, *, clock: Callable[[], int] = lambda: time_ns() // 1_000_000) -> None:
        self.path = path
        open_database(path, clock)
        self.changes = ChangeLog()
        self._writer = threading.Lock()
        self._write_engine = write_engine(path)
        self._writing: Connection | None = None
        self._read_engine = read_engine(path)

    @contextmanager
    def read(self) -> Iterator[UnitOfWork]:
        """Open a transaction on one consistent state; it is rolled back at the end."""
        with database_errors(self._note_damage), self._read_engine.connect() as connection:
            connection.begin()
            yield UnitOfWork(connection, None)

    @contextmanager
    def write(self) -> Iterator[UnitOfWork]:
        """Open a transaction that commits at the end, or leaves no trace when anything is raised."""
        with self._only_writer(), database_errors(self._note_damage):
            # Kept from one transaction to the next: taking it from the pool and giving it back costs as
            # much as several statements.
            connection, self._writing = self._writing or self._write_engine.connect(), None
            try:
                transaction = connection.begin()
                try:
                    yield UnitOfWork(connection, self.changes)
                    transaction.commit()
                except BaseException:
                    # SQLite has already rolled back when the disk is full; this is harmless then.
                    transaction.rollback()
                    raise
            except BaseException:
                connection.close()
                raise
            self._writing = connection

    def backup(self, target: Path) -> None:
        """Write a consistent copy of the database, readable by its owner only.

        Raises ``already_exists`` instead of overwriting a file.
        """
        with database_errors(self._note_damage):
            connection = sqlite3.connect(self.path, isolation_level=None)
            try:
                copy_database(connection, target)
            finally:
                connection.close()

    def close(self) -> None:
        """Close all connections; the write-ahead log is folded into the file by the last one."""
        self._read_engine.dispose()
        if self._writing is not None:
            self._writing.close()
            self._writing = None
        self._write_engine.dispose()

    @contextmanager
    def _only_writer(self) -> Iterator[None]:
        # Waiting here instead of in SQLite is fair, and its busy time-out stays for other processes.
        if not self._writer.acquire(timeout=WRITER_WAIT_SECONDS):
            raise InterleafError(
                ErrorCode.DATABASE_UNAVAILABLE,
                "The local database was busy for too long. Try again in a moment.",
            )
        try:
            yield
        finally:
            self._writer.release()

    def _note_damage(self) -> None:
        damage_marker(self.path).touch(mode=0o600)

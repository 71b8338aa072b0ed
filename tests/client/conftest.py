from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from org_server.store.engine import build_engine, sqlite_url
from org_server.store.schema import migrate
from org_server.store.unit_of_work import UnitOfWorkFactory
from tests.client.sync_world import Machine
from tests.org_server.harness import Caller, Server, TestClock


@pytest.fixture(scope="session")
def migrated_org_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's database with the newest schema, to be copied: migrating takes longer than a test."""
    path = tmp_path_factory.mktemp("org-schema") / "interleaf.db"
    engine = build_engine(sqlite_url(path))
    migrate(engine)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    return path


@pytest.fixture
def org(migrated_org_database: Path, tmp_path: Path) -> Iterator[Server]:
    """The real server, in this process."""
    path = tmp_path / "org" / "interleaf.db"
    path.parent.mkdir()
    shutil.copy(migrated_org_database, path)
    units = UnitOfWorkFactory(build_engine(sqlite_url(path)), TestClock())
    yield Server(units, TestClock())
    units.engine.dispose()


@pytest.fixture
def machine_of(org: Server, tmp_path: Path) -> Iterator[Callable[[Caller], Machine]]:
    """Makes machines that belong to people."""
    made: list[Machine] = []

    def make(caller: Caller, seed: int = 1) -> Machine:
        machine = Machine(org, caller, tmp_path / f"machine{len(made)}", seed)
        made.append(machine)
        return machine

    yield make
    for machine in made:
        machine.kill()


@pytest.fixture
def machine(org: Server, machine_of: Callable[[Caller], Machine]) -> Machine:
    """The owner's machine."""
    return machine_of(org.ada)

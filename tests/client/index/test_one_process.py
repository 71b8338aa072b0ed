"""An index belongs to one process: that of the daemon which holds the home's lock."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.config import Settings
from client.daemon.lifecycle import _lock, run_daemon
from client.wiring import Daemon
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.daemon.real_daemon import ReadyModels, install, running, settings
from tests.client.local_world import PROJECT


@pytest.fixture
def _own_umask() -> Iterator[None]:
    former = os.umask(0o077)  # Starting a daemon sets it for the whole process.
    yield
    os.umask(former)


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Return every file below a folder with its inode and time of change."""
    found = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {str(path): (stat.st_ino, stat.st_mtime_ns) for path, stat in found.items()}


@pytest.mark.usefixtures("_own_umask")
@pytest.mark.requirement("retrieval.index.one-process")
def test_a_second_daemon_is_refused_before_it_opens_anything_of_the_index(tmp_path: Path) -> None:
    made = settings(tmp_path)
    opened: list[Settings] = []

    def second(given: Settings) -> Daemon:
        opened.append(given)
        return Daemon(given, ReadyModels())

    with _lock(made.places), running(made, ReadyModels()) as daemon:
        install(daemon)
        daemon.index.run_once()
        assert daemon.index.status(PROJECT).generation == "gen-00000001"
        before = state_of(made.places.index)
        with pytest.raises(InterleafError) as refused:
            run_daemon(made, second)
        assert refused.value.code is ErrorCode.DAEMON_ALREADY_RUNNING
        assert opened == []
        assert state_of(made.places.index) == before
        assert daemon.index.status(PROJECT).error is None

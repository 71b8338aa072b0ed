"""A disk that has no room, or may not be written, in the middle of a build."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from client.index import builder as builder_module
from client.index import files as files_module
from client.index import shelf as shelf_module
from client.index import vectors as vectors_module
from tests.client.index import full_disk_process
from tests.client.index.conftest import PROJECT, World, sample
from tests.client.own_disk import has_own_disk, run_with_own_disk

own_disk = pytest.mark.skipif(not has_own_disk(), reason="no mount namespace of its own here")
NEW = "# Queue\n\nA giraffe guards the queue."


def outcome(tmp_path: Path, case: str) -> list[tuple[list[object], list[str]]]:
    disk, cache = tmp_path / "disk", tmp_path / "cache"
    disk.mkdir()
    cache.mkdir()
    done = run_with_own_disk(full_disk_process.__file__, str(disk), str(cache), case)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return list(zip(lines[::2], lines[1::2], strict=True))


@own_disk
@pytest.mark.requirement("retrieval.index.disk-full")
def test_wherever_in_a_build_the_disk_is_full_the_former_index_answers_and_the_status_says_so(
    tmp_path: Path,
) -> None:
    *failed, (last, _) = outcome(tmp_path, "full")
    assert len(failed) > 30, "it was full in the vectors, in Tantivy's files and in the rest"
    for (left, state, generation, code, error, found), left_behind in failed:
        assert (state, generation, code) == ("failed", "gen-00000001", "storage_full"), left
        assert "No space left on device. Free some room" in str(error)
        assert found == "mem_release"
        assert left_behind == ["CURRENT", "gen-00000001"], left
    assert [last[1], *last[3:]] == ["ready", None, None, "mem_release"]


@own_disk
@pytest.mark.requirement("retrieval.index.read-only")
def test_an_index_on_a_disk_that_became_read_only_answers_and_follows_when_it_is_writable_again(
    tmp_path: Path,
) -> None:
    (failed, _), (restarted, left_behind), (last, _) = outcome(tmp_path, "read-only")
    assert failed[1:4] == ["failed", "gen-00000001", "internal_error"]
    assert "Read-only file system. Check who may write to" in str(failed[4])
    assert failed[5] == "mem_release"
    assert restarted[1:3] == ["none", None], "Tantivy writes a lock to open"
    assert "cannot be read: Read-only file system" in str(restarted[4])
    assert left_behind == ["CURRENT", "gen-00000001"]
    assert last[1:] == ["ready", "gen-00000002", None, None, "mem_release"]


# Where a test may mount nothing, the same at the calls that the system would refuse.
@pytest.mark.requirement("retrieval.index.disk-full")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        (vectors_module, "_create"),
        (builder_module, "write_lexical"),
        (builder_module, "write_units"),
        (builder_module, "write_manifest"),
        (shelf_module, "private_directory"),
        (shelf_module, "write_json"),
        (files_module, "sync_directory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_full_disk_keeps_the_former_generation_and_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    world.index(sample())

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(module, name, full)
        world.index(sample(queue=NEW))
    status = world.manager.status(PROJECT)
    assert (status.state, status.error_code) == ("failed", "storage_full")
    assert world.search("expected_hash", sample()).units
    world.manager.wake(PROJECT)
    world.manager.run_once()
    assert world.manager.status(PROJECT).state == "ready"
    assert world.search("giraffe").units
    assert list(world.folder.glob("building-*")) == []

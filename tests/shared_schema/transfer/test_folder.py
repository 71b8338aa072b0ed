"""The exported folder: safe, exact, and recognised when it is imported again."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.rules.hashing import content_hash
from shared_schema.transfer.documents import Document
from shared_schema.transfer.folder import FolderWriter
from shared_schema.transfer.manifest import MANIFEST_NAME, ExportedResource, Manifest, read_manifest
from shared_schema.transfer.reading import ReadOptions
from shared_schema.transfer.sources import open_source


def entry(path: str, body: str = "text\n", resource_id: str = "") -> ExportedResource:
    return ExportedResource(
        resource_id=resource_id or f"mem_{content_hash(path)[7:17]}",
        path=path,
        scope=Scope.PROJECT,
        description="",
        content_hash=content_hash(body),
    )


def export(root: Path, bodies: dict[str, str], *, force: bool = False) -> FolderWriter:
    writer = FolderWriter(root, force=force)
    for path, body in bodies.items():
        writer.write(entry(path, body), body)
    writer.finish(Manifest(name="Web", project_id="prj_1", resources=[]))
    return writer


def files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != MANIFEST_NAME
    }


@pytest.mark.requirement("transfer.export.folder")
def test_every_text_lies_at_its_path_byte_for_byte(tmp_path: Path) -> None:
    bodies = {"a.md": "\ufeffcrlf\r\n", "ü/b c.md": "no end", "ü/d/e": "\u0065\u0301", ".x/.y.md": "dots"}
    export(tmp_path / "out", bodies)
    assert files(tmp_path / "out") == {path: body.encode() for path, body in bodies.items()}
    source = open_source(str(tmp_path / "out"), ReadOptions(), io.BytesIO())
    read = [each for each in source.entries if isinstance(each, Document)]
    assert {each.path: each.body for each in read} == bodies
    assert {each.resource_id for each in read} == {entry(path).resource_id for path in bodies}


def test_the_same_state_gives_the_same_folder(tmp_path: Path) -> None:
    for name, order in (("one", ["a.md", "b.md"]), ("two", ["b.md", "a.md"])):
        export(tmp_path / name, {path: f"{path}\n" for path in order})
    assert (tmp_path / "one" / MANIFEST_NAME).read_bytes() == (tmp_path / "two" / MANIFEST_NAME).read_bytes()


@pytest.mark.requirement("transfer.export.private")
def test_the_world_may_read_nothing_and_the_group_as_the_umask_says(tmp_path: Path) -> None:
    for mask, folder, file in ((0o022, 0o750, 0o640), (0o077, 0o700, 0o600), (0o000, 0o770, 0o660)):
        root = tmp_path / f"{mask:o}"
        before = os.umask(mask)
        try:
            export(root, {"d/a.md": "text"})
        finally:
            os.umask(before)
        modes = {path.relative_to(root).as_posix(): path.stat().st_mode & 0o777 for path in root.rglob("*")}
        assert modes == {"d": folder, "d/a.md": file, MANIFEST_NAME: file}
        assert root.stat().st_mode & 0o777 == folder


@pytest.mark.requirement("transfer.export.folder")
def test_a_folder_with_files_is_refused_without_force(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine")
    with pytest.raises(InterleafError, match="--force") as caught:
        FolderWriter(tmp_path)
    assert caught.value.code is ErrorCode.ALREADY_EXISTS
    export(tmp_path, {"a.md": "text"}, force=True)
    assert files(tmp_path) == {"mine.md": b"mine", "a.md": b"text"}


@pytest.mark.requirement("transfer.export.folder")
def test_a_second_export_takes_away_what_is_gone_and_keeps_what_somebody_changed(tmp_path: Path) -> None:
    export(tmp_path, {"keep.md": "1", "d/gone.md": "2", "d/edited.md": "3", "e/gone.md": "4"})
    (tmp_path / "d" / "edited.md").write_text("by hand")
    export(tmp_path, {"keep.md": "new"}, force=True)
    assert files(tmp_path) == {"keep.md": b"new", "d/edited.md": b"by hand"}
    assert not (tmp_path / "e").exists()


@pytest.mark.requirement("transfer.export.safe")
@pytest.mark.parametrize(
    "path",
    ["../up.md", "/etc/x", "a/../../up.md", "a\\..\\up.md", "", "C:/x.md", MANIFEST_NAME, "e\u0301.md"],
)
def test_a_path_that_would_lead_out_or_be_lost_is_left_out(tmp_path: Path, path: str) -> None:
    root = tmp_path / "out"
    writer = FolderWriter(root)
    writer.write(entry("good.md"), "text\n")
    writer.write(ExportedResource(**{**entry("x").model_dump(), "path": path}), "evil")
    writer.finish(Manifest(name="Web", resources=[]))
    assert [(item.code, item.outcome.value) for item in writer.left_out] == [("invalid_path", "refused")]
    assert files(tmp_path) == {"out/good.md": b"text\n"}


@pytest.mark.requirement("transfer.export.safe")
def test_links_in_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.md").write_text("mine")
    root = tmp_path / "root"
    root.mkdir()
    (root / "d").symlink_to(outside, target_is_directory=True)
    (root / "file.md").symlink_to(outside / "mine.md")
    writer = export(root, {"d/mine.md": "x", "d/new.md": "x", "file.md": "x", "good.md": "x"}, force=True)
    assert [item.code for item in writer.left_out] == ["symbolic_link"] * 3
    assert files(outside) == {"mine.md": b"mine"}
    assert (root / "good.md").read_text() == "x"


@pytest.mark.requirement("transfer.export.safe")
def test_a_manifest_that_names_files_outside_removes_none(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("text\n")
    root = tmp_path / "root"
    export(root, {"a.md": "text\n"})
    found = read_manifest((root / MANIFEST_NAME).read_bytes())
    assert found is not None
    listed = found.model_copy(
        update={"resources": [found.resources[0].model_copy(update={"path": "../mine.md"})]}
    )
    (root / MANIFEST_NAME).write_text(listed.model_dump_json())
    export(root, {"b.md": "x"}, force=True)
    assert (tmp_path / "mine.md").exists()


@pytest.mark.requirement("transfer.export.safe")
def test_paths_that_one_file_system_may_take_for_the_same_are_written_once(tmp_path: Path) -> None:
    writer = export(tmp_path / "out", {"a.md": "1", "A.md": "2", "a.md/b.md": "3"})
    assert [(item.path, item.code) for item in writer.left_out] == [
        ("A.md", "path_twin"),
        ("a.md/b.md", "path_twin"),
    ]
    assert writer.count == 1


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InterleafError, match="cannot be written"):
        FolderWriter(tmp_path / "file")
    (tmp_path / "out" / "d.md").mkdir(parents=True)
    with pytest.raises(InterleafError, match="cannot be written"):
        export(tmp_path / "out", {"d.md": "x"}, force=True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["d.md"]

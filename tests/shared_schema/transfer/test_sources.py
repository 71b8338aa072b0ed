"""Folders, files and standard input, as they lie on a disk."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from shared_schema import limits
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.transfer.documents import Document, Refused
from shared_schema.transfer.manifest import MANIFEST_NAME
from shared_schema.transfer.reading import Entry, ReadOptions
from shared_schema.transfer.sources import Format, Split, open_source


def read(
    target: object, kind: Format = Format.AUTO, split: Split = Split.NONE, stdin: bytes = b""
) -> list[Entry]:
    source = open_source(str(target), ReadOptions(), io.BytesIO(stdin), kind, split)
    entries = list(source.entries)
    assert source.total in {None, len(entries)}
    return entries


def paths(entries: list[Entry]) -> list[str]:
    return [entry.path for entry in entries if isinstance(entry, Document)]


def left_out(entries: list[Entry]) -> list[tuple[str, str, bool]]:
    return [(entry.source, entry.code, entry.skipped) for entry in entries if isinstance(entry, Refused)]


def put(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(f"# {name}\r\n".encode())


@pytest.mark.requirement("transfer.sources")
def test_a_folder_gives_its_markdown_files_by_path(tmp_path: Path) -> None:
    put(tmp_path, "b.md", "a/z.markdown", "a/B.MD", "a/picture.png", "readme.txt")
    source = open_source(str(tmp_path), ReadOptions(), io.BytesIO())
    entries = list(source.entries)
    assert paths(entries) == ["a/B.MD", "a/z.markdown", "b.md"]
    assert (source.total, source.others, source.name) == (3, 2, tmp_path.name)
    assert [entry.body for entry in entries if isinstance(entry, Document)][2] == "# b.md\r\n"


@pytest.mark.requirement("transfer.sources")
def test_a_vault_gives_its_notes_and_neither_settings_nor_waste_nor_attachments(tmp_path: Path) -> None:
    put(
        tmp_path, ".obsidian/app.json", ".obsidian/plugins/x.md", ".trash/old.md", "Notes/One.md", "img/a.png"
    )
    for kind in (Format.AUTO, Format.OBSIDIAN, Format.MARKDOWN):
        entries = read(tmp_path, kind)
        assert paths(entries) == ["Notes/One.md"]
        assert left_out(entries) == []


@pytest.mark.requirement("transfer.refusals")
def test_links_and_hidden_files_are_named_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, "secret.md", "deep/secret.md")
    root = tmp_path / "root"
    put(root, "a.md", ".hidden.md", ".github/x.md", ".env", "b/c.md")
    (root / "file.md").symlink_to(outside / "secret.md")
    (root / "folder").symlink_to(outside / "deep", target_is_directory=True)
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "broken.md").symlink_to("nowhere.md")
    (root / "data.bin").symlink_to(outside / "secret.md")
    entries = read(root)
    assert paths(entries) == ["a.md", "b/c.md"]
    assert left_out(entries) == [
        (".github", "hidden", True),
        (".hidden.md", "hidden", True),
        ("broken.md", "symbolic_link", True),
        ("file.md", "symbolic_link", True),
        ("folder", "symbolic_link", True),
        ("loop", "symbolic_link", True),
    ]


@pytest.mark.requirement("transfer.refusals")
def test_what_cannot_be_read_and_what_is_too_large_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.md")
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "large.md").write_bytes(b"x" * (limits.BODY_BYTES + 1))
    (tmp_path / "full.md").write_bytes(b"x" * limits.BODY_BYTES)
    entries = read(tmp_path)
    assert paths(entries) == ["a.md", "full.md"]
    assert left_out(entries) == [("large.md", "too_large", False), ("pipe.md", "unreadable", False)]


@pytest.mark.requirement("transfer.refusals")
def test_a_file_that_is_gone_when_its_turn_comes_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.md", "b.md")
    source = open_source(str(tmp_path), ReadOptions(), io.BytesIO())
    (tmp_path / "a.md").unlink()
    (tmp_path / "a.md").symlink_to("b.md")
    entries = list(source.entries)
    assert left_out(entries) == [("a.md", "unreadable", False)]
    assert paths(entries) == ["b.md"]


def test_a_name_that_is_no_utf8_is_refused_in_words_that_can_be_printed(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.md")).write_text("text")
    entries = read(tmp_path)
    assert [code for _, code, _ in left_out(entries)] == ["invalid_path"]


def test_a_manifest_that_is_none_is_refused_and_the_files_come_all_the_same(tmp_path: Path) -> None:
    put(tmp_path, "a.md", MANIFEST_NAME)
    entries = read(tmp_path)
    assert left_out(entries) == [(MANIFEST_NAME, "malformed_manifest", False)]
    assert paths(entries) == ["a.md"]


@pytest.mark.requirement("transfer.sources")
def test_one_file_is_one_document_or_one_for_each_heading(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_bytes(b"# One\r\ntext\r\n## Two\r\nmore")
    (whole,) = read(file)
    assert isinstance(whole, Document)
    assert (whole.path, whole.body) == ("AGENTS.md", "# One\r\ntext\r\n## Two\r\nmore")
    cut = read(file, split=Split.HEADINGS)
    assert paths(cut) == ["one.md", "two.md"]
    assert "".join(entry.body for entry in cut if isinstance(entry, Document)) == whole.body


def test_a_file_that_is_split_may_be_larger_than_a_document(tmp_path: Path) -> None:
    file = tmp_path / "CLAUDE.md"
    part = "x" * (limits.BODY_BYTES - 100)
    file.write_text(f"# One\n{part}\n# Two\n{part}\n")
    assert left_out(read(file)) == [("CLAUDE.md", "too_large", False)]
    assert paths(read(file, split=Split.HEADINGS)) == ["one.md", "two.md"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("memory.jsonl", b'{"type":"entity","name":"A","entityType":"t","observations":[]}', ["t/a.md"]),
        (
            "memory.json",
            b'\xef\xbb\xbf{"type":"entity","name":"A","entityType":"t","observations":[]}',
            ["t/a.md"],
        ),
        ("notes.txt", b"# Text", ["notes.txt"]),
        ("README", b"# Text", ["README"]),
    ],
)
def test_what_a_file_is_follows_from_its_name_and_beginning(
    tmp_path: Path, name: str, content: bytes, expected: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    assert paths(read(tmp_path / name)) == expected


def test_standard_input_is_named_after_its_title() -> None:
    assert paths(read("-", stdin="# Über uns\n".encode())) == ["über-uns.md"]
    assert paths(read("-", stdin=b"text")) == ["document.md"]
    graph = b'{"type":"entity","name":"A","entityType":"t","observations":[]}\n'
    assert paths(read("-", stdin=graph)) == ["t/a.md"]


@pytest.mark.requirement("transfer.refusals")
@pytest.mark.parametrize(
    ("name", "kind", "split", "told"),
    [
        ("nowhere", Format.AUTO, Split.NONE, "neither a folder nor a file"),
        ("data.bin", Format.AUTO, Split.NONE, "give --format"),
        (".", Format.AUTO, Split.HEADINGS, "one file"),
        (".", Format.JSONL, Split.NONE, "give that file"),
        (".", Format.OBSIDIAN, Split.NONE, "no vault"),
        ("a.md", Format.OBSIDIAN, Split.NONE, "a vault is a folder"),
        ("g.jsonl", Format.AUTO, Split.HEADINGS, "for Markdown"),
    ],
)
def test_a_source_that_does_not_fit_is_refused_as_a_whole(
    tmp_path: Path, name: str, kind: Format, split: Split, told: str
) -> None:
    put(tmp_path, "a.md", "data.bin", "g.jsonl")
    with pytest.raises(InterleafError, match=told) as caught:
        read(tmp_path / name, kind, split)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS

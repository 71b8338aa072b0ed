"""``memory import`` and ``memory export`` as a person uses them, through a real daemon."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from client.cli import import_commands
from client.cli.app import execute
from client.wiring import Daemon
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.transfer.manifest import MANIFEST_NAME
from tests.client.cli.test_writing import Stdin
from tests.client.daemon.real_daemon import ReadyModels, bind, install, running, settings
from tests.client.local_world import OWN, PROJECT, REFERENCE, published

Run = Callable[..., Any]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    with capture_logs(), running(settings(tmp_path / "interleaf"), ReadyModels()) as made:
        install(made)
        bind(made, checkout)
        yield made


@pytest.fixture
def said(daemon: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    home = daemon.settings.places.home
    monkeypatch.setenv("INTERLEAF_HOME", str(home))
    monkeypatch.chdir(home.parent / "checkout")

    def run(*arguments: str, status: int = 0) -> str:
        capsys.readouterr()
        assert execute(["memory", *arguments]) == status
        out, err = capsys.readouterr()
        return out or err

    return run


@pytest.fixture
def answered(said: Run) -> Run:
    return lambda *arguments, status=0: json.loads(said(*arguments, "--json", status=status))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    (root / "guides").mkdir(parents=True)
    (root / "guides" / "release.md").write_bytes(b"---\ndescription: How we release\n---\n# Release\r\n")
    (root / "own.md").write_text("# Own, newer\n")
    (root / "ref.md").write_bytes(REFERENCE.body.encode())
    return root


@pytest.mark.requirement("transfer.import.local")
def test_a_folder_becomes_drafts_and_the_second_run_finds_them(said: Run, answered: Run, notes: Path) -> None:
    report = answered("import", str(notes))
    assert report["counts"] == {"imported": 1, "changed": 1, "unchanged": 1, "refused": 0, "skipped": 0}
    assert [(item["path"], item["outcome"]) for item in report["items"]] == [
        ("guides/release.md", "imported"),
        ("own.md", "changed"),
        ("ref.md", "unchanged"),
    ]
    loaded = answered("show", "guides/release.md")
    assert loaded["content"].endswith("# Release\r\n")
    assert loaded["description"] == "How we release"
    again = answered("import", str(notes))
    assert again["counts"]["unchanged"] == 3
    assert again["project_id"] == PROJECT
    told = said("import", str(notes), "--dry-run")
    assert "Would import: 0 new, 0 changed, 3 unchanged, 0 refused." in told


@pytest.mark.requirement("transfer.import.dry-run")
def test_a_dry_run_lists_what_would_be_done(said: Run, answered: Run, notes: Path) -> None:
    (notes / "bad?.md").write_text("x")
    told = said("import", str(notes), "--dry-run", status=1)
    assert "new        guides/release.md" in told
    assert "changed    own.md" in told
    assert "refused    bad?.md: " in told
    assert "Would import: 1 new, 1 changed, 1 unchanged, 1 refused." in told
    assert len(answered("list")["resources"]) == 2


@pytest.mark.requirement("transfer.import.refusals")
def test_something_refused_ends_with_1_and_the_rest_is_there(said: Run, answered: Run, notes: Path) -> None:
    (notes / "latin.md").write_bytes(b"\xe9")
    (notes / "bad?.md").write_text("# Bad\n")
    (notes / "link.md").symlink_to("own.md")
    report = answered("import", str(notes), status=1)
    codes = {item["source"]: item["code"] for item in report["items"] if item["code"]}
    assert codes == {"latin.md": "not_utf8", "bad?.md": "invalid_path", "link.md": "symbolic_link"}
    assert report["counts"] == {"imported": 1, "changed": 1, "unchanged": 1, "refused": 2, "skipped": 1}
    (notes / "latin.md").unlink()
    told = said("import", str(notes), "--rename-paths")
    assert "new        bad-.md (renamed from bad?.md)" in told
    assert "Imported: 1 new, 0 changed, 3 unchanged, 0 refused, 1 skipped." in told
    assert "skipped    link.md: " in told


def test_one_file_is_split_and_put_below_a_prefix(answered: Run, tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text("intro\n# Build\nmake\n# Test\nmake test\n")
    report = answered("import", str(file), "--split", "headings", "--into", "agents/")
    assert [item["path"] for item in report["items"]] == [
        "agents/preamble.md",
        "agents/build.md",
        "agents/test.md",
    ]
    assert (
        answered("import", str(file), "--split", "headings", "--into", "agents")["counts"]["unchanged"] == 3
    )


@pytest.mark.requirement("transfer.import.org")
def test_standard_input_becomes_documents_of_the_organization(
    answered: Run, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Owns it."]}
    monkeypatch.setattr("sys.stdin", Stdin(json.dumps(line).encode() + b"\nbroken\n"))
    report = answered("import", "-", "--format", "jsonl", "--scope", "org", status=1)
    assert [(item["path"], item["code"]) for item in report["items"]] == [
        (None, "malformed_line"),
        ("person/ada.md", None),
    ]
    (draft,) = daemon.services.read_drafts.list(_listing()).drafts
    assert (draft.scope, draft.path) == (Scope.ORG, "person/ada.md")


def _listing() -> Any:
    from shared_schema.daemon_contract import DraftListCall

    return DraftListCall(project=PROJECT)


@pytest.mark.requirement("transfer.import.again")
def test_an_import_that_is_cut_off_is_continued(
    answered: Run, daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "many"
    root.mkdir()
    for number in range(250):
        (root / f"{number:03}.md").write_text(f"# Number {number}\n")
    asked = import_commands.ask
    batches: list[int] = []

    def cut(method: str, call: Any, answer: Any, **more: Any) -> Any:
        batches.append(len(call.documents))
        if len(batches) == 3:
            raise InterleafError(ErrorCode.DAEMON_UNAVAILABLE, "cut off")
        return asked(method, call, answer, **more)

    monkeypatch.setattr(import_commands, "ask", cut)
    assert answered("import", str(root), status=1)["error"]["code"] == "daemon_unavailable"
    assert batches == [100, 100, 50]
    report = answered("import", str(root))
    assert report["counts"] == {"imported": 50, "changed": 0, "unchanged": 200, "refused": 0, "skipped": 0}
    assert len(answered("list")["resources"]) == 252


def test_large_documents_go_in_several_calls(answered: Run, tmp_path: Path) -> None:
    root = tmp_path / "large"
    root.mkdir()
    for number in range(4):
        # Every one of these characters takes six bytes in JSON.
        (root / f"{number}.md").write_text(f"# {number}\n" + "\x01" * 1_000_000)
    assert answered("import", str(root))["counts"]["imported"] == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere"],
        [".", "--into", "../up"],
        [".", "--split", "headings"],
        [".", "--title", "x"],
        [".", "--submit", "--dry-run"],
        [".", "--project", "Racket"],
    ],
)
def test_what_does_not_go_together_is_refused_with_words(
    said: Run, arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / "checkout" / "a.md").write_text("# A\n")
    told = said("import", *arguments, status=2 if "--title" in arguments or "--submit" in arguments else 1)
    assert "error: " in told
    assert "Traceback" not in told


# --- export ---------------------------------------------------------------------------------


def files(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file() and path.name != MANIFEST_NAME)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


@pytest.mark.requirement("transfer.export.memory")
def test_what_is_published_is_exported_and_imported_again_unchanged(
    said: Run, answered: Run, notes: Path, tmp_path: Path
) -> None:
    answered("import", str(notes))
    out = tmp_path / "out"
    report = answered("export", str(out))
    assert (report["documents"], report["left_out"]) == (2, [])
    assert files(out) == {"own.md": OWN.body.encode(), "ref.md": REFERENCE.body.encode()}
    assert answered("import", str(out))["counts"] == {
        "imported": 0,
        "changed": 1,
        "unchanged": 1,
        "refused": 0,
        "skipped": 0,
    }
    shutil.rmtree(out)
    assert "Exported 3 documents to" in said("export", str(out), "--drafts")
    assert answered("import", str(out))["counts"]["unchanged"] == 3


@pytest.mark.requirement("transfer.export.folder")
def test_a_folder_with_files_needs_force(said: Run, answered: Run, notes: Path) -> None:
    error = answered("export", str(notes), status=1)["error"]
    assert error["code"] == "already_exists"
    assert "--force" in said("export", str(notes), status=1)
    answered("export", str(notes), "--force")
    assert (notes / "own.md").read_bytes() == OWN.body.encode()
    assert (notes / "guides" / "release.md").exists()


def test_an_export_begins_anew_when_the_project_changes_meanwhile(
    answered: Run, daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from client.cli import export_commands

    install(daemon, resources=[published(f"mem_{number:04}", f"d/{number}.md") for number in range(300)])
    asked = export_commands.ask
    calls: list[str] = []

    def change(method: str, call: Any, answer: Any) -> Any:
        calls.append(call.after)
        if len(calls) == 2:
            install(
                daemon, resources=[published(f"mem_{number:04}", f"e/{number}.md") for number in range(3)]
            )
        return asked(method, call, answer)

    monkeypatch.setattr(export_commands, "ask", change)
    assert answered("export", str(tmp_path / "out"))["documents"] == 3
    assert sorted(files(tmp_path / "out")) == ["e/0.md", "e/1.md", "e/2.md"]


def test_a_document_that_has_no_place_on_the_disk_is_named(said: Run, daemon: Daemon, tmp_path: Path) -> None:
    install(daemon, resources=[published("mem_a", "a.md"), published("mem_b", "../b.md")])
    told = said("export", str(tmp_path / "out"), status=1)
    assert "left out   ../b.md: " in told
    assert "Exported 1 document to" in told
    assert not (tmp_path / "b.md").exists()

"""Where texts come from: files, standard input, an editor."""

from __future__ import annotations

import io
import stat
import sys
from pathlib import Path

import pytest

from client.cli.writing import edited_text, read_body
from shared_schema.errors import ErrorCode, InterleafError
from tests import text_fixtures as texts


class Stdin(io.TextIOWrapper):
    """Standard input with these bytes, on a terminal."""

    def __init__(self, content: bytes = b"", terminal: bool = True) -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.requirement("cli.bytes")
@pytest.mark.parametrize("name", sorted(texts.BODIES))
def test_a_file_and_standard_input_are_read_byte_for_byte(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = texts.BODIES[name]
    file = tmp_path / "body.md"
    file.write_bytes(body.encode())
    assert read_body(str(file)) == body
    monkeypatch.setattr(sys, "stdin", Stdin(body.encode()))
    assert read_body("-") == body


@pytest.mark.parametrize("content", [b"\xff\xfe", "é".encode("latin-1")])
def test_a_file_in_another_encoding_is_refused_with_the_place(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "body.md"
    file.write_bytes(content)
    with pytest.raises(InterleafError, match="at byte 0"):
        read_body(str(file))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InterleafError, match=r"no\.md cannot be read") as refused:
        read_body("no.md")
    assert refused.value.code is ErrorCode.INVALID_ARGUMENTS


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that stands for the editor; it notes its file's name, mode and text, then appends."""
    script = tmp_path / "my editor"
    notes = tmp_path / "notes"
    script.write_text(
        f"#!{sys.executable}\nimport os, sys\nfile = sys.argv[-1]\n"
        f"text = open(file, encoding='utf-8', newline='').read()\n"
        f"open({str(notes)!r}, 'w').write(file + ' ' + oct(os.stat(file).st_mode & 0o777))\n"
        f"open(file, 'a', newline='').write(os.environ.get('APPENDED', ''))\n"
        f"sys.exit(int(os.environ.get('STATUS', '0')))\n",
        encoding="utf-8",
    )
    script.chmod(0o700)
    monkeypatch.setenv("VISUAL", f"'{script}' --wait")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(sys, "stdin", Stdin())
    return notes


@pytest.mark.requirement("cli.editor")
def test_the_editor_gets_the_text_in_a_file_of_ours_alone(
    editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPENDED", "more\r\n")
    with edited_text(texts.CRLF, "guides/a.md") as body:
        assert body == texts.CRLF + "more\r\n"
    file, mode = editor.read_text(encoding="utf-8").rsplit(" ", 1)
    assert (Path(file).suffix, mode) == (".md", "0o600")
    assert not Path(file).exists()


@pytest.mark.requirement("cli.editor")
def test_what_was_written_is_kept_when_it_could_not_be_stored(
    editor: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APPENDED", "hours of work")
    with pytest.raises(InterleafError), edited_text("", "a.md"):
        raise InterleafError(ErrorCode.STORAGE_FULL)
    file = Path(editor.read_text(encoding="utf-8").rsplit(" ", 1)[0])
    assert str(file) in capsys.readouterr().err.replace("\n", "")
    assert file.read_text(encoding="utf-8") == "hours of work"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.requirement("cli.editor")
@pytest.mark.parametrize(("appended", "status"), [("", "0"), ("text", "1")])
def test_nothing_is_done_when_nothing_changed_or_the_editor_failed(
    editor: Path, monkeypatch: pytest.MonkeyPatch, appended: str, status: str
) -> None:
    monkeypatch.setenv("APPENDED", appended)
    monkeypatch.setenv("STATUS", status)
    with pytest.raises(InterleafError, match="nothing was done"), edited_text("old", "a.md"):
        pytest.fail("the block must not run")
    assert not Path(editor.read_text(encoding="utf-8").rsplit(" ", 1)[0]).exists()


def test_an_editor_needs_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(terminal=False))
    with pytest.raises(InterleafError, match="--body-file"), edited_text("", "a.md"):
        pytest.fail("the block must not run")


def test_a_missing_editor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin())
    monkeypatch.setenv("VISUAL", "no-such-editor")
    with pytest.raises(InterleafError, match="no-such-editor cannot be started"), edited_text("", "a.md"):
        pytest.fail("the block must not run")

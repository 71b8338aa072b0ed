"""Where a document's text comes from: a file, standard input, or the person's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from client.cli.output import say
from shared_schema.errors import ErrorCode, InterleafError

_FALLBACK_EDITOR: Final = "notepad" if sys.platform == "win32" else "vi"


def read_body(file: str) -> str:
    """Return the text of a file, or of standard input for ``-``, byte for byte as UTF-8.

    Raises ``invalid_arguments`` when it cannot be read or is no UTF-8.
    """
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise _bad_file(f"{file} cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad_file(f"{file} is not UTF-8 (at byte {error.start}); convert it first") from None


@contextmanager
def edited_text(text: str, name: str) -> Iterator[str]:
    """Open the editor with ``text`` and yield what was saved; ``name`` gives the file its suffix.

    The file is removed once the block inside has ended well, and kept when it failed: nobody shall
    lose what they wrote. Raises ``invalid_arguments`` without a terminal, or when nothing changed.
    """
    if not sys.stdin.isatty():
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS, "An editor needs a terminal. Give the text with --body-file FILE"
        )
    descriptor, created = tempfile.mkstemp(prefix="interleaf-", suffix=Path(name).suffix or ".md")
    file = Path(created)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(text.encode())
    try:
        _open_editor(file)
        body = read_body(created)
    except BaseException:
        file.unlink()
        raise
    if body == text:
        file.unlink()
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS, "Nothing was changed in the editor, so nothing was done."
        )
    try:
        yield body
    except BaseException:
        say(f"Your text is kept in {file}", stderr=True)
        raise
    file.unlink()


def _open_editor(file: Path) -> None:
    given = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _FALLBACK_EDITOR
    command = [given] if sys.platform == "win32" else shlex.split(given)
    try:
        status = subprocess.run([*command, str(file)], check=False).returncode
    except OSError as error:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"The editor {given} cannot be started: {error.strerror}. Set $EDITOR.",
        ) from None
    if status != 0:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"The editor {given} ended with status {status}, so nothing was done.",
        )


def _bad_file(problem: str) -> InterleafError:
    fields = [{"field": "body_file", "problem": problem}]
    return InterleafError(ErrorCode.INVALID_ARGUMENTS, f"{problem}.", details={"fields": fields})

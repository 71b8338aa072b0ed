"""A diff on a terminal, in a pipe, and with text that wants to hide."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from client.cli import diffing
from client.cli.diffing import print_diff

DIFF = """--- guides/review.md
+++ guides/review.md
@@ -1,3 +1,3 @@
 # Review
-A review waits at most one working day.
+A review waits at most four hours.
--- a horizontal rule that was removed
"""


def on_terminal(monkeypatch: pytest.MonkeyPatch, diff: str, **options: object) -> str:
    out = io.StringIO()
    monkeypatch.setattr(
        diffing, "console", lambda: Console(file=out, force_terminal=True, width=80, **options)
    )
    print_diff(diff)
    return out.getvalue()


@pytest.mark.requirement("cli.diff")
def test_a_pipe_gets_the_lines_as_they_are_without_colours(capsys: pytest.CaptureFixture[str]) -> None:
    long = "+" + "word " * 100
    print_diff(DIFF + long + "\n")
    assert capsys.readouterr().out == DIFF + long + "\n"


@pytest.mark.requirement("cli.diff")
def test_a_terminal_marks_the_words_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    out = on_terminal(monkeypatch, DIFF, color_system="standard")
    assert "\x1b[1;7;31mone" in out
    assert "\x1b[1;7;32mfour" in out
    assert "\x1b[1m+++ guides/review.md" in out
    assert "\x1b[31m--- a horizontal rule that was removed" in out.replace("\x1b[0m\x1b[31m", "")


@pytest.mark.requirement("cli.diff")
def test_no_colour_is_used_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    out = on_terminal(monkeypatch, DIFF, no_color=True)
    assert "\x1b[31m" not in out
    assert ";31m" not in out


@pytest.mark.requirement("cli.diff", "cli.visible")
def test_hidden_characters_and_line_endings_are_visible_in_a_diff(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    diff = "@@ -1 +1 @@\n-text\n+text\r\n+\u202eevil\x1b[2J\n"
    print_diff(diff)
    assert capsys.readouterr().out == "@@ -1 +1 @@\n-text\n+text<U+000D>\n+<U+202E>evil<U+001B>[2J\n"
    out = on_terminal(monkeypatch, diff, color_system=None)
    assert "<U+202E>evil<U+001B>[2J" in out
    assert "\x1b[2J" not in out


@pytest.mark.parametrize("length", [10, 100_000])
def test_very_long_lines_are_shown_whole_and_quickly(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    words = "word " * length
    out = on_terminal(monkeypatch, f"-{words}a\n+{words}b\n", color_system=None)
    assert out.count("word") == 2 * length

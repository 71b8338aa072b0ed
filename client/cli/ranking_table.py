"""A ranking on a screen of 80 columns: one document a line, and its figures in columns below it.

::

        words meaning fused  again  floor
      1  guides/code-review.md > Code review > Time
            1       2     1    1     +6.4  96 tokens

A dash is a unit that is not in that list's best, or was not looked at again; an arrow tells that
looking again moved it up or down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from client.cli.output import console
from client.cli.visible import visible_line

if TYPE_CHECKING:
    from rich.text import Text

_COLUMNS: Final = (("words", 7), ("meaning", 8), ("fused", 6), ("again", 7), ("floor", 7))
_INDENT: Final = 5
_NOTE: Final = sum(width for _, width in _COLUMNS) + 2
"""Where what became of a candidate begins."""
_LEAST: Final = 20
"""Columns of text even on the narrowest screen."""


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate. Ranks and places count from 1; none where there is none."""

    number: int | None
    """Its place in the answer."""
    name: str
    words: int | None
    meaning: int | None
    fused: int
    again: int | None
    margin: float | None
    note: str


def print_rows(rows: Iterable[Row]) -> None:
    """Print candidates under the titles of the columns."""
    screen = console()
    _put(_text("".join(f"{title:>{width}}" for title, width in _COLUMNS), "dim"))
    for row in rows:
        name = _text(visible_line(row.name), "bold")
        number = f"{row.number or '':>3}  "
        for line in _wrapped(name, screen.width - _INDENT):
            _put(_text(number) + line)
            number = " " * _INDENT
        figures = _figures(row)
        for line in _wrapped(_text(visible_line(row.note), "dim"), screen.width - _NOTE):
            _put(figures + line)
            figures = _text(" " * _NOTE)


def named(path: str, headings: Sequence[str], unit_key: str) -> str:
    """Return a unit as people know it: its path and headings, or that it is the description."""
    # No heading gives a key with "@" in it.
    return f"{path} (description)" if "/@description/" in unit_key else " > ".join([path, *headings])


def prose(text: str, style: str = "", *, indent: str = "") -> None:
    """Print a paragraph, broken between words; further lines are as far in as ``indent`` is long."""
    lead = indent
    for line in _wrapped(_text(visible_line(text), style), console().width - len(indent)):
        _put(_text(lead) + line)
        lead = " " * len(indent)


def gauge(margin: float, cells: int = 12) -> str:
    """Return a scale with the floor in its middle and a mark where the margin is, one cell a unit."""
    marks = ["·"] * (2 * cells + 1)
    marks[cells] = "|"
    marks[max(0, min(2 * cells, cells + round(margin)))] = "●"
    return "".join(marks)


def signed(margin: float) -> str:
    """Return how far above or below the floor, as ``+6.4`` or ``-3.1``; never a zero below it."""
    text = f"{margin:+.1f}"
    return text if margin < 0 or text != "-0.0" else "+0.0"


def _figures(row: Row) -> Text:
    again, style = _moved(row.fused, row.again)
    margin = "–" if row.margin is None else signed(row.margin)
    cells = (_rank(row.words), _rank(row.meaning), str(row.fused), again, margin)
    styles = ("", "", "", style, "" if row.margin is None else "green" if row.margin >= 0 else "red")
    line = _text("")
    for cell, shade, (_, width) in zip(cells, styles, _COLUMNS, strict=True):
        line.append(f"{cell:>{width}}", style=shade)
    return line.append("  ")


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def _moved(fused: int, again: int | None) -> tuple[str, str]:
    if again is None:
        return "–  ", ""
    if again == fused:
        return f"{again}  ", ""
    return (f"{again} ↑", "green") if again < fused else (f"{again} ↓", "red")


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style=style)


def _wrapped(text: Text, width: int) -> list[Text]:
    """Return the lines of a text, none of them longer than ``width`` columns."""
    lines = list(text.wrap(console(), max(width, _LEAST))) if text.plain else [text]
    for line in lines:
        line.rstrip()
    return lines


def _put(line: Text) -> None:
    line.rstrip()
    console().print(line, soft_wrap=True)

"""What commands print: one JSON object, or text for people that fits 80 columns.

Everything that reaches a terminal from here went through `visible`. Rich decides about colours: none
into a pipe, none with ``NO_COLOR``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from client.cli.visible import escaped_json, visible, visible_line

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console
    from rich.text import Text


def show(answer: BaseModel | Mapping[str, Any], as_json: bool, human: Callable[[], None]) -> None:
    """Print ``answer`` as JSON, or call ``human``, which prints it for people."""
    if as_json:
        print_json(answer)
    else:
        human()


def print_json(answer: BaseModel | Mapping[str, Any]) -> None:
    """Print one JSON object on one line, in UTF-8."""
    value = dict(answer) if isinstance(answer, Mapping) else answer.model_dump(mode="json")
    sys.stdout.write(escaped_json(json.dumps(value, ensure_ascii=False)) + "\n")


_COLUMN: Final = 8
"""Columns of text that every further cell of a table gets at least."""


def console(*, stderr: bool = False) -> Console:
    """Return a console on the present stdout or stderr; it interprets nothing in what it is given."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def say(text: str = "", style: str = "", *, stderr: bool = False) -> None:
    """Print lines of prose; long ones are left to the terminal, so that they can be copied."""
    console(stderr=stderr).print(visible(text), style=style or None, soft_wrap=True)


def facts(rows: Iterable[tuple[str, str | None]]) -> None:
    """Print names and values in two columns; a value of None is left out."""
    table = _grid()
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            table.add_row(name, styled(value))
    _print(table)


def table(titles: Sequence[str], rows: Iterable[Sequence[str | Text]], *, empty: str) -> None:
    """Print rows under titles; the first column is the one to copy from and is never cut or folded."""
    lines = [[cell if not isinstance(cell, str) else styled(cell) for cell in row] for row in rows]
    if not lines:
        say(empty)
        return
    grid = _grid()
    grid.show_header = True
    for position, title in enumerate(titles):
        grid.add_column(title, header_style="bold", no_wrap=position == 0, overflow="fold")
    for line in lines:
        grid.add_row(*line)
    # A long first cell must not squeeze the others out of sight: rather a line that the terminal breaks.
    longest = max(part.cell_len for line in lines for part in line[0].split("\n"))
    _print(grid, at_least=longest + sum(2 + max(len(title), _COLUMN) for title in titles[1:]))


def _grid() -> Any:
    from rich.table import Table

    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))


def _print(grid: Any, at_least: int = 0) -> None:
    screen = console()
    screen.width = max(screen.width, at_least)
    if screen.is_terminal:
        screen.print(grid)
        return
    # Columns are padded to their width; in a file the spaces behind the last word only disturb.
    with screen.capture() as captured:
        screen.print(grid)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().split("\n")[:-1])


def styled(value: str, style: str = "", below: str = "") -> Text:
    """Return a cell: one visible line in ``style``, and a dim line ``below`` it."""
    from rich.text import Text

    text = Text().append(visible_line(value), style=style)
    if below:
        text.append("\n" + visible_line(below), style="dim")
    return text


def moment(at: int | None) -> str:
    """Return epoch milliseconds as local time, or ``never``."""
    if at is None:
        return "never"
    return datetime.fromtimestamp(at / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def count(number: int, one: str, many: str | None = None) -> str:
    """Return ``1 Draft`` or ``3 Drafts``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def size(number: int) -> str:
    """Return bytes as megabytes, as the models' sizes are given."""
    return f"{number / 1e6:.0f} MB"


def busy(text: str, *, as_json: bool = False) -> AbstractContextManager[object]:
    """Show on a terminal's stderr that something takes time; nothing elsewhere."""
    screen = console(stderr=True)
    return screen.status(text) if screen.is_terminal and not as_json else nullcontext()

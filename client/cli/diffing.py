"""Unified diffs on a terminal: lines in colour, and the words that differ marked in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from client.cli.output import console
from client.cli.visible import visible

if TYPE_CHECKING:
    from rich.text import Text

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_LONGEST_LINE: Final = 2_000
"""Characters of a line in which differing words are looked for; the search is quadratic at worst."""


def print_diff(diff: str) -> None:
    """Print a unified diff; carriage returns and all other hidden characters are spelled out."""
    screen = console()
    lines = diff.removesuffix("\n").split("\n")
    if not screen.is_terminal:
        screen.out("\n".join(map(visible, lines)), highlight=False)
        return
    for text in _coloured(lines):
        screen.print(text, soft_wrap=True)


def _coloured(lines: list[str]) -> Iterator[Text]:
    from rich.text import Text

    # What stands before the first hunk is the head; a removed rule below looks like its "--- ".
    at = next((place for place, line in enumerate(lines) if line.startswith("@@")), 0)
    for line in lines[:at]:
        yield Text(visible(line), style="bold")
    while at < len(lines):
        removed = _run(lines, at, "-")
        added = _run(lines, at + len(removed), "+")
        if removed or added:
            pairs = list(zip(removed, added, strict=True)) if len(removed) == len(added) else []
            marked = [_marked(old[1:], new[1:]) for old, new in pairs]
            yield from _block(removed, "red", [old for old, _ in marked])
            yield from _block(added, "green", [new for _, new in marked])
            at += len(removed) + len(added)
            continue
        line = lines[at]
        yield Text(visible(line), style="cyan" if line.startswith("@@") else "")
        at += 1


def _run(lines: list[str], at: int, sign: str) -> list[str]:
    found = []
    while at < len(lines) and lines[at].startswith(sign):
        found.append(lines[at])
        at += 1
    return found


def _block(lines: list[str], colour: str, marked: list[list[tuple[str, bool]]]) -> Iterator[Text]:
    from rich.text import Text

    for position, line in enumerate(lines):
        text = Text(line[0], style=colour)
        for part, differs in marked[position] if marked else [(line[1:], False)]:
            text.append(visible(part), style="bold reverse" if differs else "")
        yield text


def _marked(old: str, new: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Return both lines in parts, each with whether it is not in the other."""
    if max(len(old), len(new)) > _LONGEST_LINE:
        return [(old, False)], [(new, False)]
    before, after = _WORD.findall(old), _WORD.findall(new)
    left: list[tuple[str, bool]] = []
    right: list[tuple[str, bool]] = []
    for kind, start, end, other_start, other_end in SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        differs = kind != "equal"
        left.append(("".join(before[start:end]), differs))
        right.append(("".join(after[other_start:other_end]), differs))
    return left, right

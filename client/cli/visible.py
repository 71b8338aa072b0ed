"""Text of others, made safe for a terminal: what would be invisible or obeyed is spelled out.

Memory is written by many hands, and a terminal obeys what it is shown: an escape sequence can clear
the screen or hide a line, a bidirectional control can show code in another order than it runs
("Trojan Source", CVE-2021-42574), a tag or zero-width character can carry words that only a model
reads. Every such character is shown as ``<U+202E>``. Joiners inside emoji and Indic or Persian words
are shown as well: no simple rule tells them from hidden ones.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_BLANK_LETTERS: Final = frozenset(map(ord, "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"))
"""Blank on the screen, though no white space or control by their category."""
_SELECTORS: Final = (range(0xFE00, 0xFE0E), range(0xE0100, 0xE01F0))
"""Variation selectors can carry any bytes; the two that choose how an emoji looks are not counted."""
_HARMLESS: Final = frozenset(map(ord, "\n\t"))


def _hidden(point: int) -> bool:
    if point in _HARMLESS:
        return False
    return (
        unicodedata.category(chr(point)) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        or point in _BLANK_LETTERS
        or any(point in selectors for selectors in _SELECTORS)
    )


class _Shown(dict[int, str]):
    """A table for ``str.translate`` that decides about a character when it first meets it."""

    def __missing__(self, point: int) -> str:
        found = self[point] = f"<U+{point:04X}>" if _hidden(point) else chr(point)
        return found


class _Escaped(dict[int, str]):
    """The same for JSON: hidden characters as escapes that parse to themselves."""

    def __missing__(self, point: int) -> str:
        found = chr(point)
        if _hidden(point):
            units = found.encode("utf-16-be", "surrogatepass")
            found = "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
        self[point] = found
        return found


_SHOWN: Final = _Shown()
_ON_ONE_LINE: Final = _Shown({ord("\n"): "<U+000A>", ord("\t"): "<U+0009>"})
_ESCAPED: Final = _Escaped()


def visible(text: str) -> str:
    """Return ``text`` with every control, format and blank character but newline and tab spelled out."""
    return text.translate(_SHOWN)


def visible_line(text: str) -> str:
    """Return ``text`` on one line: newlines and tabs are spelled out too."""
    return text.translate(_ON_ONE_LINE)


def escaped_json(text: str) -> str:
    r"""Return JSON that parses to the same value, with hidden characters as ``\uXXXX`` escapes."""
    return text.translate(_ESCAPED)

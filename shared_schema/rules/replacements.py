"""Exact text replacements: each ``old_text`` names one place of the original, all or nothing.

Texts are compared code point by code point: no normalisation, no folding of case or line endings.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Final, Literal, NamedTuple, Never

from pydantic import Field

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Contract

LISTED_MATCHES: Final = 20
"""An ambiguous replacement names the lines of at most so many matches."""

LineEnding = Literal["lf", "crlf", "cr", "mixed", "none"]


class Replacement(Contract):
    """One exact edit: the text that is there, once, and the text that takes its place."""

    old_text: str = Field(min_length=1)
    new_text: str


class _Span(NamedTuple):
    start: int
    end: int
    number: int


def apply_replacements(text: str, replacements: Sequence[Replacement]) -> str:
    """Return ``text`` with every replacement made; nothing is changed when one of them fails.

    Every ``old_text`` is looked up in the same original, so the order of replacements does not
    matter, and has to occur exactly once, overlapping occurrences counted. Spans may touch.
    The time is proportional to the text for each replacement, for any text.

    Raises, with ``details.index`` (zero-based):
    ``text_replacement_not_found`` (``details.reason`` is ``line_endings`` and
    ``details.document_line_ending`` names the document's when only those differ);
    ``text_replacement_ambiguous`` (``details.lines``: the 1-based lines of the first 20 matches);
    ``text_replacement_overlap`` (``details.indexes``: both replacements);
    ``text_replacement_no_change`` (without index when only all of them together change nothing).
    """
    spans = sorted(_locate(text, index, replacement) for index, replacement in enumerate(replacements))
    for earlier, later in pairwise(spans):
        if later.start < earlier.end:
            _refuse_overlap(earlier.number, later.number)
    parts: list[str] = []
    position = 0
    for span in spans:
        parts += (text[position : span.start], replacements[span.number].new_text)
        position = span.end
    parts.append(text[position:])
    result = "".join(parts)
    if result == text:
        raise InterleafError(
            ErrorCode.TEXT_REPLACEMENT_NO_CHANGE,
            "The replacements leave the text as it is. Leave out the edit.",
        )
    return result


def line_ending_of(text: str) -> LineEnding:
    """Return which line ending a text uses; ``mixed`` when it uses several."""
    crlf = text.count("\r\n")
    kinds: list[LineEnding] = []
    if crlf:
        kinds.append("crlf")
    if text.count("\n") > crlf:
        kinds.append("lf")
    if text.count("\r") > crlf:
        kinds.append("cr")
    if not kinds:
        return "none"
    return kinds[0] if len(kinds) == 1 else "mixed"


def _locate(text: str, index: int, replacement: Replacement) -> _Span:
    old = replacement.old_text
    if old == replacement.new_text:
        raise InterleafError(
            ErrorCode.TEXT_REPLACEMENT_NO_CHANGE,
            f"Replacement {index} has the same old_text and new_text. Leave it out.",
            details={"index": index},
        )
    # str.find, other than str.rfind and str.count, searches in linear time for any pair of texts
    # and can be continued one character further, which finds overlapping matches.
    start = text.find(old)
    if start < 0:
        _refuse_missing(text, index, old)
    if text.find(old, start + 1) >= 0:
        _refuse_ambiguous(text, index, old)
    return _Span(start, start + len(old), index)


def _refuse_missing(text: str, index: int, old: str) -> Never:
    details: dict[str, object] = {"index": index}
    message = (
        f"The old_text of replacement {index} is not in the text. Copy it exactly from the loaded content."
    )
    if _fold_line_endings(old) in _fold_line_endings(text):
        ending = line_ending_of(text)
        details |= {"reason": "line_endings", "document_line_ending": ending}
        message = (
            f"The old_text of replacement {index} differs from the text in its line endings only; "
            f"those of the document are: {ending}. Copy it exactly from the loaded content."
        )
    raise InterleafError(ErrorCode.TEXT_REPLACEMENT_NOT_FOUND, message, details=details)


def _refuse_ambiguous(text: str, index: int, old: str) -> Never:
    lines = [_line_of(text, start) for start in islice(_matches(text, old), LISTED_MATCHES)]
    raise InterleafError(
        ErrorCode.TEXT_REPLACEMENT_AMBIGUOUS,
        f"The old_text of replacement {index} occurs more than once "
        f"(lines {', '.join(map(str, lines))}). Lengthen it until it occurs exactly once.",
        details={"index": index, "lines": lines},
    )


def _refuse_overlap(one: int, other: int) -> Never:
    first, second = sorted((one, other))
    raise InterleafError(
        ErrorCode.TEXT_REPLACEMENT_OVERLAP,
        f"Replacements {first} and {second} overlap. Join them into one.",
        details={"index": second, "indexes": [first, second]},
    )


def _line_of(text: str, position: int) -> int:
    """Return the 1-based line of a position; LF, CRLF and a lone CR end a line."""
    breaks = text.count("\n", 0, position) + text.count("\r", 0, position) - text.count("\r\n", 0, position)
    # Between the halves of a CRLF the line has not ended yet.
    inside_crlf = position > 0 and text[position - 1 : position + 1] == "\r\n"
    return breaks + 1 - inside_crlf


def _matches(text: str, old: str) -> Iterator[int]:
    start = text.find(old)
    while start >= 0:
        yield start
        start = text.find(old, start + 1)


def _fold_line_endings(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")

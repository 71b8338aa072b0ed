"""Unified diffs of two states of a document, as reviewers read them."""

from collections.abc import Iterator
from typing import Final

from shared_schema.memory import ResourceState
from shared_schema.rules.line_diff import Hunk, diff_lines, split_lines

CONTEXT: Final = 3
"""Unchanged lines around a change."""
_NOTHING: Final = "/dev/null"
_NO_NEWLINE: Final = "\\ No newline at end of file\n"


def unified_diff(before: ResourceState, after: ResourceState) -> str:
    """Return the unified diff of the bodies, headed by the paths; empty when body and path are equal.

    The format is that of ``diff -u``: lines keep their endings, and one without any is followed by
    a line that says so.
    """
    old_path = before.path if before.exists else _NOTHING
    new_path = after.path if after.exists else _NOTHING
    old, new = split_lines(before.body), split_lines(after.body)
    hunks = diff_lines(old, new)
    if not hunks and old_path == new_path:
        return ""
    parts = [f"--- {old_path}\n", f"+++ {new_path}\n"]
    for group in _grouped(hunks):
        parts += _hunk_lines(group, old, new)
    return "".join(parts)


def _grouped(hunks: list[Hunk]) -> Iterator[list[Hunk]]:
    """Yield hunks that are close enough to share their context."""
    group: list[Hunk] = []
    for hunk in hunks:
        if group and hunk.start - group[-1].end > 2 * CONTEXT:
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def _hunk_lines(group: list[Hunk], old: list[str], new: list[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    lead = min(CONTEXT, first.start)
    tail = min(CONTEXT, len(old) - last.end)
    old_range = _range(first.start - lead, last.end + tail)
    new_range = _range(first.new_start - lead, last.new_end + tail)
    yield f"@@ -{old_range} +{new_range} @@\n"
    position = first.start - lead
    for hunk in group:
        yield from _marked(" ", old[position : hunk.start])
        yield from _marked("-", old[hunk.start : hunk.end])
        yield from _marked("+", new[hunk.new_start : hunk.new_end])
        position = hunk.end
    yield from _marked(" ", old[position : last.end + tail])


def _range(start: int, end: int) -> str:
    count = end - start
    # An empty range names the line before it.
    return f"{start + 1 if count else start},{count}"


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line
        if not line.endswith(("\n", "\r")):
            yield "\n" + _NO_NEWLINE

"""Where a line that somebody commented is in a later text."""

from shared_schema.rules.line_diff import diff_lines, split_lines


def line_at(text: str, number: int) -> str:
    """Return line ``number`` (from 1) without its ending; empty beyond the text."""
    lines = _bare(text)
    return lines[number - 1] if 0 < number <= len(lines) else ""


def present_line(then: str, now: str, number: int) -> int | None:
    """Return where line ``number`` (from 1) of ``then`` stands in ``now``; None once it is gone.

    The line difference says what became of it. A line that it counts as removed was only moved when
    exactly one line of both texts reads like it; blank ones are not looked for. Line endings do not
    count, so that a text converted from CRLF keeps its comments.
    """
    old, new = _bare(then), _bare(now)
    place = number - 1
    if not 0 <= place < len(old):
        return None
    shift = 0
    for hunk in diff_lines(old, new):
        if place < hunk.start:
            break
        if place < hunk.end:
            return _moved(old, new, old[place])
        shift = hunk.new_end - hunk.end
    return place + shift + 1


def _moved(old: list[str], new: list[str], line: str) -> int | None:
    if not line.strip() or old.count(line) != 1 or new.count(line) != 1:
        return None
    return new.index(line) + 1


def _bare(text: str) -> list[str]:
    return [line.removesuffix("\n").removesuffix("\r") for line in split_lines(text)]

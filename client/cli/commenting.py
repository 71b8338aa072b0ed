"""Comments of a Review on a terminal: who, where in the present text, and what."""

from __future__ import annotations

from collections.abc import Iterable

from client.cli.output import moment, say
from shared_schema import org_contract as api


def print_comments(comments: Iterable[api.Comment]) -> None:
    """Print comments, each with its id, its place and the line that it is about."""
    for item in comments:
        done = f", resolved by {item.resolved_by_email}" if item.resolved else ""
        say(f"  {item.comment_id}  {item.author_email}, {moment(item.created_at)}, {place_of(item)}{done}")
        if item.quote is not None:
            say(f"    > {item.quote}", style="dim")
        for line in item.body.splitlines():
            say(f"    {line}")


def place_of(item: api.Comment) -> str:
    """Return where the comment belongs now, or where it was before its line went."""
    if item.draft_id is None:
        return "the whole Review"
    path, line = (
        (item.path, item.line) if item.outdated else (item.present_path or item.path, item.present_line)
    )
    place = (path or "a deletion") + (f" line {line}" if line is not None else "")
    return f"was {place}, outdated" if item.outdated else place

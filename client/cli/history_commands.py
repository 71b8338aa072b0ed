"""``interleaf memory history`` and ``blame``: who published what, as the Organization server keeps it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import typer

from client.cli.options import InProject, Json
from client.cli.organization import find_project, server
from client.cli.output import count, moment, say, show, styled, table
from shared_schema import org_contract as api
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import is_resource_id

if TYPE_CHECKING:
    from rich.text import Text

    from client.sync.org_client import OrgClient

HISTORY_EXAMPLES: Final = (
    "interleaf memory history guides/code-review.md",
    "interleaf memory history mem_… --project Rocket --limit 200 --json",
)
BLAME_EXAMPLES: Final = (
    "interleaf memory blame guides/code-review.md",
    "interleaf memory blame guides/code-review.md --commit COMMIT",
)

_Resource = Annotated[str, typer.Argument(metavar="RESOURCE", help="Resource id or published path.")]
_Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many changes.")]
_Commit = Annotated[
    str | None, typer.Option("--commit", metavar="COMMIT", help="As it was at this commit; default: now.")
]


def history(
    resource: _Resource, limit: _Limit = 50, project: InProject = None, as_json: Json = False
) -> None:
    """Show what happened to a published document, newest first.

    A document that was removed is found by its id.
    """
    with server() as org:
        place = find_project(org, project).project_id
        found = list(islice(org.history(place, _id_of(org, place, resource)), limit + 1))
    entries, more = found[:limit], len(found) > limit
    answer = {"entries": [entry.model_dump(mode="json") for entry in entries], "more": more}

    def human() -> None:
        table(
            ["Commit", "What happened, when, by which Review"],
            [[entry.commit.commit_id[:12], _told(entry)] for entry in entries],
            empty="Nothing happened to it yet.",
        )
        if more:
            say(f"\nOlder changes are left out; see them with: --limit {limit * 4}")

    show(answer, as_json, human)


def blame(
    resource: _Resource, commit: _Commit = None, project: InProject = None, as_json: Json = False
) -> None:
    """Show a published document with who last changed each line.

    The lines of an Org reference are told from the Organization's history.
    """
    with server() as org:
        place = find_project(org, project).project_id
        found = org.blame(place, _id_of(org, place, resource), commit)
    show(found, as_json, lambda: _print_blame(found))


def _id_of(org: OrgClient, project_id: str, resource: str) -> str:
    if is_resource_id(resource):
        return resource
    for item in org.memories(project_id):
        if item.path == resource:
            return item.resource_id
    raise InterleafError(
        ErrorCode.MEMORY_RESOURCE_NOT_FOUND,
        f"Nothing is published at {resource}. Find paths and ids with: interleaf memory list",
        details={"resource": resource},
    )


def _told(entry: api.HistoryEntry) -> Text:
    change, commit = entry.change, entry.commit
    what = change.kind.value
    if change.kind is api.ChangeKind.MOVED:
        what = f"moved from {change.path_before} to {change.path_after}"
        if change.content_hash_before != change.content_hash_after:
            what += ", and changed"
    return styled(what, "bold", f"{moment(commit.created_at)}, {_by(commit)}")


def _by(commit: api.CommitInfo) -> str:
    review = commit.review
    if review is None:
        return commit.review_id or "without a Review"
    approved = f", approved by {', '.join(review.approvers)}" if review.approvers else ""
    return f"{review.title} ({review.review_id}) by {review.author_email}{approved}"


def _print_blame(found: api.Blame) -> None:
    commits = {commit.commit_id: commit for commit in found.commits}
    lines = found.body.split("\n")
    names = {name: _who(commit) for name, commit in commits.items()}
    wide = max(map(len, names.values()), default=0)
    for part in found.ranges:
        for number in range(part.first, part.first + part.count):
            who = f"{part.commit_id[:8]}  {names[part.commit_id]:<{wide}}"
            say(f"{who}  {number:>4}  {lines[number - 1].removesuffix(chr(13))}")
    if not found.complete:
        say(f"\nOnly {count(len(commits), 'commit')} back: the oldest lines may be older still.", style="dim")


def _who(commit: api.CommitInfo) -> str:
    author = commit.review.author_email if commit.review is not None else "-"
    return f"{moment(commit.created_at)[:10]} {author}"

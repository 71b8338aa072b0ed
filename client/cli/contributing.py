"""What a Review offers to the Organization: how it is asked for, and how it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from shared_schema import org_contract as api
from shared_schema.daemon_contract import Offer
from shared_schema.ids import is_resource_id
from shared_schema.reviews import ReviewStatus

Contribute = Annotated[
    list[str] | None,
    typer.Option(
        "--contribute",
        metavar="DRAFT[=PATH]",
        help="Offer this Draft to the Organization, too, once the Review is merged: as a new document (at "
        "PATH), or with =mem_… as a change of that one. An adaptation goes to its source. Repeatable.",
    ),
]


def offers(wanted: Sequence[str] | None) -> list[Offer]:
    """Return the offers that ``DRAFT``, ``DRAFT=PATH`` and ``DRAFT=mem_…`` ask for."""
    made = []
    for text in wanted or ():
        draft, separator, place = text.partition("=")
        if not draft or (separator and not place):
            raise typer.BadParameter(f"{text} is not DRAFT or DRAFT=PATH", param_hint="--contribute")
        target = is_resource_id(place)
        made.append(
            Offer(draft=draft, path=None if target else place or None, target_id=place if target else None)
        )
    return made


def contribution_facts(detail: api.ReviewDetail) -> list[tuple[str, str | None]]:
    """Return rows that say what a Review offers to the Organization, and what came of it."""
    return [("Org contribution", _state(detail)), ("Contributed from", detail.contribution_of)]


def _state(detail: api.ReviewDetail) -> str | None:
    if not detail.org_contribution:
        return None
    if detail.contribution_review_id is not None:
        return f"Review {detail.contribution_review_id}"
    if detail.review.status is ReviewStatus.MERGED:
        why = detail.contribution_error or "not tried to the end yet"
        return f"failed: {why} Try again with: interleaf review contribute {detail.review.review_id}"
    if detail.review.status in (ReviewStatus.OPEN, ReviewStatus.APPROVED):
        return f"follows the merge, of {', '.join(_offer(entry) for entry in detail.org_contribution)}"
    return None


def _offer(entry: api.ContributionEntry) -> str:
    place = entry.path or entry.target_id
    return f"{entry.draft_id} as {place}" if place else entry.draft_id

"""What happens to a local Draft when the state it was made on has moved.

========================================== ==================================================
since the base                             decision
========================================== ==================================================
the authority did not move                 `Keep`
only other resources moved, path still free `AdvanceBase`: noted here, nothing uploaded
own resource moved, both sides go together  `RecordRebase`: an operation with the merged state
they do not, or the path was taken          `ReportConflicts`: the Draft keeps its text
========================================== ==================================================

Pure. A Draft in conflict is decided anew each time, so a conflict that went away leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shared_schema.memory import ABSENT, OrgSource, PublishedResource, ResourceState, Scope
from shared_schema.org_contract import Conflict
from shared_schema.rules.reconcile import reconcile


@dataclass(frozen=True, slots=True)
class DraftView:
    """What the decision needs to know about a Draft."""

    scope: Scope
    base_commit: str | None
    base: ResourceState
    state: ResourceState
    """The base with the Draft's operations applied."""
    conflicting: bool = False


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing to do."""


@dataclass(frozen=True, slots=True)
class AdvanceBase:
    """The same state is the base at ``base_commit`` too."""

    base_commit: str | None


@dataclass(frozen=True, slots=True)
class RecordRebase:
    """Both changes together are ``state``, on the new base."""

    base_commit: str
    base: ResourceState
    state: ResourceState


@dataclass(frozen=True, slots=True)
class ReportConflicts:
    """What does not go together."""

    conflicts: tuple[Conflict, ...]


Decision = Keep | AdvanceBase | RecordRebase | ReportConflicts


def decide_rebase(
    draft: DraftView,
    current: ResourceState,
    authority_commit: str | None,
    occupied: Callable[[str], str | None],
) -> Decision:
    """Decide about an open or submitted Draft.

    ``current`` is the published state of the Draft's resource at ``authority_commit``, the newest
    commit known of the Draft's target authority. ``occupied`` tells which other published resource
    stands in the way of a path.
    """
    if draft.base_commit == authority_commit and not draft.conflicting:
        return Keep()
    merged = reconcile(draft.base, current, draft.state, occupied)
    if merged.state is None:
        return ReportConflicts(merged.conflicts)
    if current == draft.base or authority_commit is None:
        return AdvanceBase(authority_commit)
    return RecordRebase(authority_commit, current, merged.state)


def current_of(
    scope: Scope, published: PublishedResource | None, installed_commit: str | None, base_commit: str | None
) -> tuple[ResourceState, str | None]:
    """Return the published state of a Draft's resource and the authority's commit that it stands at.

    A Project shows no commit of the Organization but the one that published each reference, so for
    Org scope that one is the newest known; without the reference the Draft stays where it is.
    """
    state = published.state() if published is not None else ABSENT
    if scope is Scope.PROJECT:
        return state, installed_commit
    source: OrgSource | None = published.org_source if published is not None else None
    return state, source.commit_id if source is not None else base_commit

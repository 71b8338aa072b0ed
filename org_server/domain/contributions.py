"""Org contributions: what of a Project Review shall also be offered to the Organization, and as what.

::

    submitted   entries are checked and recorded with the Project Review
    merged      in a transaction of its own: published content ──▶ Org Drafts ──▶ one Org Review
    failed      code and message are recorded; the same may be tried again
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from org_server.domain.states import HashedState
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.org_contract import ContributionEntry
from shared_schema.rules.paths import normalise_path


@dataclass(frozen=True)
class Contribution:
    """What a Review records: the wish, and the Org Review or the failure that came of it."""

    entries: tuple[ContributionEntry, ...]
    review_id: str | None = None
    error_code: str | None = None
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the form that is stored."""
        return {
            "entries": [entry.model_dump() for entry in self.entries],
            "review_id": self.review_id,
            "error_code": self.error_code,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Rebuild what `as_json` made."""
        entries = tuple(ContributionEntry.model_validate(entry) for entry in value["entries"])
        return cls(entries, value["review_id"], value["error_code"], value["error"])

    def without(self, draft_id: str) -> Self | None:
        """Return what is left when a Draft leaves the Review; None for nothing."""
        left = tuple(entry for entry in self.entries if entry.draft_id != draft_id)
        return replace(self, entries=left) if left else None

    def opened(self, review_id: str) -> Self:
        """Return the record once the Org Review is open."""
        return replace(self, review_id=review_id, error_code=None, error=None)

    def failed(self, error: InterleafError) -> Self:
        """Return the record of a failed try."""
        return replace(self, error_code=error.code.value, error=error.message)


class OrgChange(NamedTuple):
    """One Org Draft to make: of an existing Org resource, or of a new one (``target_id`` None)."""

    entry: ContributionEntry
    target_id: str | None
    state: HashedState


def record_entries(
    scope: Scope, entries: Sequence[ContributionEntry], drafts: Mapping[str, HashedState]
) -> tuple[ContributionEntry, ...]:
    """Return the entries as they are recorded: paths in the stored form, targets filled in.

    ``drafts`` holds the states of the Review's Drafts by id. An adaptation goes to its Org source
    unless a path asks for a new Org resource. Raises ``invalid_path``, and ``invalid_arguments``
    for anything but Drafts of a Project Review, each once, that leave something to contribute.
    """
    if entries and scope is not Scope.PROJECT:
        raise _refused("belongs to Project Reviews; an Org Review goes to the Organization anyway")
    recorded: dict[str, ContributionEntry] = {}
    for entry in entries:
        state = drafts.get(entry.draft_id)
        if state is None:
            raise _refused(f"names {entry.draft_id}, which is no Draft of this Review")
        if entry.draft_id in recorded:
            raise _refused(f"names {entry.draft_id} twice")
        if not state.exists:
            raise _refused(f"names {entry.draft_id}, which deletes its document")
        path = None if entry.path is None else normalise_path(entry.path)
        target_id = entry.target_id or (state.source_id if path is None else None)
        recorded[entry.draft_id] = ContributionEntry(draft_id=entry.draft_id, path=path, target_id=target_id)
    targets = [entry.target_id for entry in recorded.values() if entry.target_id is not None]
    if twice := sorted({target for target in targets if targets.count(target) > 1}):
        raise _refused(f"changes {', '.join(twice)} twice")
    return tuple(recorded.values())


def require_targets(entries: Sequence[ContributionEntry], published: Collection[str]) -> None:
    """Raise ``invalid_arguments`` unless every target is among the ``published`` Org resources."""
    missing = [entry.target_id for entry in entries if entry.target_id not in (None, *published)]
    if missing:
        raise _refused(f"targets {missing[0]}, which the Organization does not have; give a path instead")


def org_changes(
    entries: Sequence[ContributionEntry],
    published: Mapping[str, HashedState],
    targets: Mapping[str, HashedState],
) -> list[OrgChange]:
    """Return the Org Drafts that offer what was published; what the Organization has already is left out.

    ``published`` holds what the merge published by Draft id, ``targets`` the Org resources as they
    are now. A target keeps its own path unless the entry names another. Raises
    ``memory_resource_not_found`` for a target that was deleted since, and ``draft_empty`` where
    nothing is left to offer.
    """
    changes: list[OrgChange] = []
    for entry in entries:
        state = published[entry.draft_id]
        if not state.exists:
            raise InterleafError(
                ErrorCode.DRAFT_EMPTY,
                f"The Review deleted the document of {entry.draft_id}, so there is no content to contribute.",
                details={"draft_ids": [entry.draft_id]},
            )
        path = entry.path or state.path
        if entry.target_id is not None:
            target = targets.get(entry.target_id)
            if target is None or not target.exists:
                raise InterleafError(
                    ErrorCode.MEMORY_RESOURCE_NOT_FOUND,
                    f"The Org resource {entry.target_id} was deleted. Propose the content as a new one with: "
                    "interleaf draft create --scope org",
                    details={"target_id": entry.target_id},
                )
            path = entry.path or target.path
        offered = HashedState(True, path, state.description, state.content_hash)
        if entry.target_id is None or offered != targets[entry.target_id]:
            changes.append(OrgChange(entry, entry.target_id, offered))
    if not changes:
        raise InterleafError(
            ErrorCode.DRAFT_EMPTY, "The Organization has exactly this content already; nothing is left to do."
        )
    return changes


def _refused(problem: str) -> InterleafError:
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"The Org contribution {problem}.",
        details={"fields": [{"field": "org_contribution", "problem": problem}]},
    )

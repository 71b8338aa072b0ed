"""A Draft as this machine holds it: its header, its base and its operations, as one value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shared_schema.drafts import (
    ACTIVE_STATUSES,
    DraftHeader,
    DraftOperation,
    DraftStatus,
    Freshness,
    OperationKind,
    Reconciliation,
    apply_operation,
)
from shared_schema.memory import ABSENT, OrgSource, ResourceState, Scope


class BrokenDraft(Exception):  # noqa: N818 - it names what was found, and is no failure of the caller
    """The operations of a Draft do not fit its base; the Draft is left out and reported."""


@dataclass(frozen=True, slots=True)
class LocalDraft:
    """One Draft. ``operations`` are in order, without the cancelled ones."""

    draft_id: str
    project_id: str
    """The Project that carries it, for Org scope too."""
    scope: Scope
    resource_id: str
    base_commit: str | None
    """The commit of the target authority that the Draft was made on."""
    base: ResourceState
    created_at: int
    updated_at: int
    seq: int = 0
    """Order of creation on this machine; given by the store."""
    overlay: bool = True
    """False for a proposal that Effective Memory does not show."""
    status: DraftStatus = DraftStatus.OPEN
    org_source: OrgSource | None = None
    """On the create Draft of an adaptation: the source version that it was made from."""
    review_id: str | None = None
    merged_commit: str | None = None
    """The target authority's commit that published it."""
    merged_seq: int | None = None
    """Number of the first commit *of the carrying Project* that contains the result."""
    reconciliation: Reconciliation = Reconciliation.UNKNOWN
    conflicts: tuple[str, ...] = ()
    """Kinds of what does not go together with the published state."""
    operations: tuple[DraftOperation, ...] = ()
    broken: bool = False
    """Stored in a form that this release cannot read."""
    unread: int = 0
    """Operations that ``operations`` lacks for that reason."""

    @property
    def active(self) -> bool:
        """Whether it is open or submitted."""
        return self.status in ACTIVE_STATUSES

    @property
    def discarded_here(self) -> bool:
        """Whether it was this machine that ended it."""
        ended = self.status is DraftStatus.DISCARDED
        return ended and any(each.kind is OperationKind.DISCARD for each in self.operations)

    @property
    def next_ordinal(self) -> int:
        """Position of the next operation."""
        return len(self.operations) + self.unread + 1

    def header(self) -> DraftHeader:
        """Return what the server is told about the Draft with every upload."""
        return DraftHeader(
            draft_id=self.draft_id,
            project_id=self.project_id,
            scope=self.scope,
            resource_id=self.resource_id,
            base_commit=self.base_commit,
            org_source=self.org_source,
        )

    def state(self) -> ResourceState:
        """Return the base after every operation; a rebase stands for all before it.

        Raises `BrokenDraft` when an operation has nothing to work on, a number is missing, or the
        stored form could not be read.
        """
        if self.broken or [item.ordinal for item in self.operations] != list(
            range(1, len(self.operations) + 1)
        ):
            raise BrokenDraft(self.draft_id)
        state = self.base
        for operation in self.operations[self._last_rebase() :]:
            if not state.exists and operation.kind in _NEED_A_RESOURCE:
                raise BrokenDraft(self.draft_id)
            state = apply_operation(state, operation, self.org_source)
        if state.exists and not (state.path and state.body):
            raise BrokenDraft(self.draft_id)
        return state if state.exists else ABSENT

    def without_discard(self) -> LocalDraft:
        """Return the Draft as it was before it was discarded, so that people can read what it said."""
        kept = tuple(item for item in self.operations if item.kind is not OperationKind.DISCARD)
        return replace(self, operations=kept)

    def shown_path(self) -> str:
        """Return a path by which people know the Draft, after a deletion and when broken too."""
        paths = [self.base.path]
        for operation in self.operations:
            paths += [operation.path or "", operation.state.path if operation.state else ""]
        return next((path for path in reversed(paths) if path), "")

    def _last_rebase(self) -> int:
        places = (i for i, item in enumerate(self.operations) if item.kind is OperationKind.REBASE)
        return max(places, default=0)

    def overlays(self, installed_seq: int) -> bool:
        """Tell whether it lies over the published state of a Project at this commit number.

        A merged Draft stays until the published state contains it, so that a reader never sees the
        former text again between push and pull.
        """
        if not self.overlay:
            return False
        if self.status is DraftStatus.MERGED:
            return self.merged_seq is not None and installed_seq < self.merged_seq
        return self.active

    def freshness(self, authority_commit: str | None) -> Freshness:
        """Tell whether the target authority moved since the base."""
        return Freshness.CURRENT if authority_commit == self.base_commit else Freshness.BEHIND


_NEED_A_RESOURCE = frozenset({OperationKind.UPDATE, OperationKind.RENAME, OperationKind.DELETE})

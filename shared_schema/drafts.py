"""Drafts and their operations, as both sides store and exchange them.

Three dimensions, never folded into one: ``status`` (where the Draft is in its life),
``freshness`` (whether the published state moved since its base) and ``reconciliation`` (whether
both changes go together). Every operation has its own ``sync_status`` besides.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from shared_schema import limits
from shared_schema.memory import ABSENT, Contract, OrgSource, ResourceState, Scope


class DraftStatus(StrEnum):
    """Where a Draft is in its life."""

    OPEN = "open"
    SUBMITTED = "submitted"
    MERGED = "merged"
    DISCARDED = "discarded"


ACTIVE_STATUSES = frozenset({DraftStatus.OPEN, DraftStatus.SUBMITTED})


class Freshness(StrEnum):
    """Whether the ref moved since the Draft's base."""

    CURRENT = "current"
    BEHIND = "behind"


class Reconciliation(StrEnum):
    """Whether the Draft and what was published since go together."""

    UNKNOWN = "unknown"
    CLEAN = "clean"
    CONFLICTS = "conflicts"


class OperationKind(StrEnum):
    """What one operation does to its Draft."""

    CREATE = "create"
    UPDATE = "update"
    RENAME = "rename"
    DELETE = "delete"
    REBASE = "rebase"
    DISCARD = "discard"


class DraftOperation(Contract):
    """One durable local write, with its complete results: an omitted field stays as it was.

    ============ ==========================================================================
    kind         fields
    ============ ==========================================================================
    ``create``   ``path`` and ``body``; ``description``; always ordinal 1
    ``update``   ``body`` or ``description`` or both (``body`` is the complete result)
    ``rename``   ``path``; ``description``
    ``delete``   ``description`` (a reason; the resource is gone afterwards)
    ``rebase``   ``base_commit`` and ``state``: the complete state on the new base
    ``discard``  nothing; the Draft ends
    ============ ==========================================================================
    """

    operation_id: str = Field(pattern=r"^lop_[A-Za-z0-9_.-]{1,120}$")
    ordinal: int = Field(ge=1)
    """Position in the Draft, from 1, without holes."""
    kind: OperationKind = Field(strict=False)
    path: str | None = None
    description: str | None = Field(default=None, max_length=limits.DESCRIPTION_CHARACTERS)
    body: str | None = None
    base_commit: str | None = None
    state: ResourceState | None = None

    @model_validator(mode="after")
    def _fields_fit_the_kind(self) -> Self:
        given = {
            name
            for name in ("path", "description", "body", "base_commit", "state")
            if getattr(self, name) is not None
        }
        required, optional = _FIELDS[self.kind]
        if missing := required - given:
            raise ValueError(f"{self.kind} needs {', '.join(sorted(missing))}")
        if extra := given - required - optional:
            raise ValueError(f"{self.kind} does not take {', '.join(sorted(extra))}")
        if self.kind is OperationKind.UPDATE and not given:
            raise ValueError("update needs body or description")
        if self.kind is OperationKind.CREATE and self.ordinal != 1:
            raise ValueError("create is always the first operation of its Draft")
        return self


_FIELDS: dict[OperationKind, tuple[frozenset[str], frozenset[str]]] = {
    OperationKind.CREATE: (frozenset({"path", "body"}), frozenset({"description"})),
    OperationKind.UPDATE: (frozenset(), frozenset({"body", "description"})),
    OperationKind.RENAME: (frozenset({"path"}), frozenset({"description"})),
    OperationKind.DELETE: (frozenset(), frozenset({"description"})),
    # A rebase onto an authority without any commit yet carries an empty base_commit.
    OperationKind.REBASE: (frozenset({"base_commit", "state"}), frozenset()),
    OperationKind.DISCARD: (frozenset(), frozenset()),
}


class DraftHeader(Contract):
    """What a Draft is made on; fixed when it is created (a rebase moves the base)."""

    draft_id: str = Field(pattern=r"^drf_[A-Za-z0-9_.-]{1,120}$")
    project_id: str
    """The Project that carries it, for Org scope too."""
    scope: Scope = Field(strict=False)
    resource_id: str
    base_commit: str | None = None
    """The authority's commit that the author saw; none when it had no commit yet."""
    org_source: OrgSource | None = None
    """On the create Draft of an adaptation: the fixed source version."""


def apply_operation(
    state: ResourceState, operation: DraftOperation, org_source: OrgSource | None = None
) -> ResourceState:
    """Return the state after ``operation``; pure, total, and the same on both sides.

    ``org_source`` is the Draft's, used by ``create`` only. Whether the operation is allowed in
    this state is decided by the caller before.
    """
    match operation.kind:
        case OperationKind.CREATE:
            return ResourceState(
                exists=True,
                path=operation.path or "",
                description=operation.description or "",
                body=operation.body or "",
                org_source=org_source,
            )
        case OperationKind.UPDATE | OperationKind.RENAME:
            changed = {
                name: value
                for name in ("path", "description", "body")
                if (value := getattr(operation, name)) is not None
            }
            return state.model_copy(update=changed)
        case OperationKind.DELETE | OperationKind.DISCARD:
            return ABSENT
        case OperationKind.REBASE:
            return operation.state or ABSENT

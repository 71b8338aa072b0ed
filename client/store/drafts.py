"""Drafts and their operations. They are precious: nothing here is ever deleted."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, func, or_, select, update

from client.domain.local_draft import LocalDraft
from client.store.prepared import Prepared, prepared_insert
from client.store.published import source_columns, source_of
from client.store.tables import metadata
from shared_schema.drafts import ACTIVE_STATUSES, DraftOperation, DraftStatus, Reconciliation
from shared_schema.memory import ABSENT, ResourceState, Scope

_DRAFT = metadata.tables["draft"]
_OPERATION = metadata.tables["operation"]
_PROJECT = metadata.tables["project"]
# Equalities instead of IN: an IN is written out anew for every execution.
_ACTIVE = or_(*(_DRAFT.c.status == status.value for status in sorted(ACTIVE_STATUSES)))


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One operation as it stands in the log. ``answer`` is what its caller was told, as JSON."""

    operation_id: str
    draft_id: str
    ordinal: int
    """Negative: cancelled before anything of it was sent."""
    kind: str
    fingerprint: str | None
    answer: str | None
    created_at: int


class DraftRepository:
    """The Drafts of this machine."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, draft_id: str) -> LocalDraft | None:
        """Return one Draft with its operations, or None."""
        return next(iter(self._read(select(_DRAFT).where(_DRAFT.c.draft_id == draft_id))), None)

    def active_of(self, project_id: str, resource_id: str) -> LocalDraft | None:
        """Return the open or submitted Draft on a resource of the Project, or None."""
        return next((draft for draft in self.standing_on(project_id, resource_id) if draft.active), None)

    def standing_on(self, project_id: str, resource_id: str) -> tuple[LocalDraft, ...]:
        """Return the Drafts on a resource that still matter, in order of creation: active ones,
        proposals too, and merged ones that the installed commit does not contain yet.
        """
        return self._read_prepared(_STANDING_ON, {"project": project_id, "resource": resource_id})

    def overlaying(
        self, project_id: str, resource_ids: Collection[str] | None = None
    ) -> tuple[LocalDraft, ...]:
        """Return the Drafts that lie over a Project's published state, in order of creation.

        ``resource_ids`` narrows it to those on these resources.
        """
        if resource_ids is None:
            return self._read(_OVERLAYING, {"project": project_id})
        if len(resource_ids) == 1:
            return self._read_prepared(
                _OVERLAYING_ONE, {"project": project_id, "resource": next(iter(resource_ids))}
            )
        return self._read(_OVERLAYING_SOME, {"project": project_id, "resources": sorted(resource_ids)})

    def list(self, project_id: str | None = None, *, active_only: bool = False) -> tuple[LocalDraft, ...]:
        """Return Drafts in order of creation, proposals and those of lost Projects too."""
        statement = select(_DRAFT).order_by(_DRAFT.c.seq)
        if project_id is not None:
            statement = statement.where(_DRAFT.c.project_id == project_id)
        if active_only:
            statement = statement.where(_ACTIVE)
        return self._read(statement)

    def active_on(self, resource_id: str) -> tuple[LocalDraft, ...]:
        """Return the active Drafts on a resource, whatever Project carries them."""
        statement = select(_DRAFT).where(_DRAFT.c.resource_id == resource_id, _ACTIVE)
        return self._read(statement.order_by(_DRAFT.c.seq))

    def add(self, draft: LocalDraft) -> None:
        """Insert a new Draft without its operations; the store numbers it."""
        _ADD.run(self._connection, {"draft_id": draft.draft_id, **_columns(draft)})

    def put(self, draft: LocalDraft) -> None:
        """Store what changed of a Draft's header; its operations stay as they are."""
        # The base of a broken Draft was not read, so it must not be written over what is stored.
        statement = _PUT_BROKEN if draft.broken else _PUT
        statement.run(self._connection, {"which": draft.draft_id, **_columns(draft)})

    # --- operations ---------------------------------------------------------------------

    def operation(self, operation_id: str) -> OperationRow | None:
        """Return one operation of the log, or None."""
        columns = [_OPERATION.c[name] for name in OperationRow.__slots__]
        row = self._connection.execute(
            select(*columns).where(_OPERATION.c.operation_id == operation_id)
        ).first()
        return None if row is None else OperationRow(**row._mapping)

    def add_operation(
        self,
        draft_id: str,
        operation: DraftOperation,
        created_at: int,
        *,
        fingerprint: str | None = None,
        answer: str | None = None,
    ) -> None:
        """Append an operation to a Draft's log."""
        _ADD_OPERATION.run(
            self._connection,
            {
                "operation_id": operation.operation_id,
                "draft_id": draft_id,
                "ordinal": operation.ordinal,
                "kind": operation.kind.value,
                "payload": operation.model_dump_json(exclude_none=True),
                "fingerprint": fingerprint,
                "answer": answer,
                "created_at": created_at,
            },
        )

    def cancel_operations(self, operation_ids: Iterable[str]) -> None:
        """Take operations that were never sent out of their Draft; they stay in the log."""
        for operation_id in operation_ids:
            self._connection.execute(
                update(_OPERATION)
                .where(_OPERATION.c.operation_id == operation_id, _OPERATION.c.ordinal > 0)
                .values(ordinal=_below_all_of(_OPERATION.c.draft_id))
            )

    def move_operation(self, draft_id: str, operation: DraftOperation) -> None:
        """Give an operation of the log another Draft, place and payload; who asked for it stays known."""
        self._connection.execute(
            update(_OPERATION)
            .where(_OPERATION.c.operation_id == operation.operation_id)
            .values(
                draft_id=draft_id,
                ordinal=operation.ordinal,
                kind=operation.kind.value,
                payload=operation.model_dump_json(exclude_none=True),
            )
        )

    # --- rows to values -----------------------------------------------------------------

    def _read(
        self, statement: Select[Any], parameters: dict[str, object] | None = None
    ) -> tuple[LocalDraft, ...]:
        return self._with_operations(self._connection.execute(statement, parameters).all())

    def _read_prepared(self, statement: Prepared, parameters: dict[str, object]) -> tuple[LocalDraft, ...]:
        return self._with_operations(statement.run(self._connection, parameters))

    def _with_operations(self, rows: Sequence[Any]) -> tuple[LocalDraft, ...]:
        payloads: dict[str, list[str]] = defaultdict(list)
        for start in range(0, len(rows), _BATCH):
            drafts = [row.draft_id for row in rows[start : start + _BATCH]]
            found: Iterable[Any] = (
                _PAYLOADS.run(self._connection, {"draft": drafts[0]})
                if len(drafts) == 1
                else self._connection.execute(_PAYLOADS_OF_MANY, {"drafts": drafts})
            )
            for draft_id, payload in found:
                payloads[draft_id].append(payload)
        return tuple(_draft(row, payloads[row.draft_id]) for row in rows)


_BATCH = 500
"""Drafts whose operations one statement reads; SQLite bounds the number of its parameters."""


def _standing() -> ColumnElement[bool]:
    installed = select(_PROJECT.c.installed_seq).where(_PROJECT.c.project_id == bindparam("project"))
    merged = and_(
        _DRAFT.c.status == DraftStatus.MERGED.value, _DRAFT.c.merged_seq > installed.scalar_subquery()
    )
    return and_(_DRAFT.c.project_id == bindparam("project"), or_(_ACTIVE, merged))


def _below_all_of(draft_id: ColumnElement[str]) -> Any:
    """A place among a Draft's cancelled operations that none has: places are given more than once."""
    other = _OPERATION.alias()
    lowest = select(func.min(other.c.ordinal)).where(other.c.draft_id == draft_id).scalar_subquery()
    return func.min(lowest, 0) - 1


_ADD = prepared_insert(_DRAFT, without=["seq"])
_ADD_OPERATION = prepared_insert(_OPERATION)
_CHANGING = [column.name for column in _DRAFT.c if column.name not in {"seq", "draft_id"}]
_BY_ID = update(_DRAFT).where(_DRAFT.c.draft_id == bindparam("which"))
_PUT = Prepared(_BY_ID, _CHANGING)
_PUT_BROKEN = Prepared(_BY_ID, [name for name in _CHANGING if name != "base"])
_STANDING_ON = Prepared(
    select(_DRAFT).where(_standing(), _DRAFT.c.resource_id == bindparam("resource")).order_by(_DRAFT.c.seq)
)
_OVERLAYING = select(_DRAFT).where(_standing(), _DRAFT.c.overlay).order_by(_DRAFT.c.seq)
_OVERLAYING_SOME = _OVERLAYING.where(_DRAFT.c.resource_id.in_(bindparam("resources", expanding=True)))
_OVERLAYING_ONE = Prepared(_OVERLAYING.where(_DRAFT.c.resource_id == bindparam("resource")))
_OF_DRAFTS = (
    select(_OPERATION.c.draft_id, _OPERATION.c.payload)
    .where(_OPERATION.c.ordinal > 0)
    .order_by(_OPERATION.c.draft_id, _OPERATION.c.ordinal)
)
_PAYLOADS = Prepared(_OF_DRAFTS.where(_OPERATION.c.draft_id == bindparam("draft")))
_PAYLOADS_OF_MANY = _OF_DRAFTS.where(_OPERATION.c.draft_id.in_(bindparam("drafts", expanding=True)))


def _draft(row: Any, payloads: list[str]) -> LocalDraft:
    base, broken = ABSENT, False
    operations: list[DraftOperation] = []
    try:
        base = ResourceState.model_validate_json(row.base)
        operations.extend(map(DraftOperation.model_validate_json, payloads))
    except ValidationError:
        # One unreadable Draft is reported and left out; it never takes the Project down.
        broken = True
    return LocalDraft(
        draft_id=row.draft_id,
        project_id=row.project_id,
        scope=Scope(row.scope),
        resource_id=row.resource_id,
        base_commit=row.base_commit,
        base=base,
        created_at=row.created_at,
        updated_at=row.updated_at,
        seq=row.seq,
        overlay=bool(row.overlay),
        status=DraftStatus(row.status),
        org_source=source_of(row),
        review_id=row.review_id,
        merged_commit=row.merged_commit,
        merged_seq=row.merged_seq,
        reconciliation=Reconciliation(row.reconciliation),
        conflicts=tuple(json.loads(row.conflicts)),
        operations=tuple(operations),
        broken=broken,
        unread=len(payloads) - len(operations),
    )


def _columns(draft: LocalDraft) -> dict[str, object]:
    return {
        "project_id": draft.project_id,
        "scope": draft.scope.value,
        "resource_id": draft.resource_id,
        "overlay": draft.overlay,
        "status": draft.status.value,
        "base_commit": draft.base_commit,
        "base": draft.base.model_dump_json(exclude_none=True),
        **source_columns(draft.org_source),
        "review_id": draft.review_id,
        "merged_commit": draft.merged_commit,
        "merged_seq": draft.merged_seq,
        "reconciliation": draft.reconciliation.value,
        "conflicts": json.dumps(draft.conflicts),
        "created_at": draft.created_at,
        "updated_at": draft.updated_at,
    }

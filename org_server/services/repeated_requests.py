"""The same request twice, one effect: the recorded answers of requests with an ``Idempotency-Key``.

Effect and answer are written in one transaction, under the lock that every writer takes first. So
of two requests with one key, however close together, one acts and the other reads its answer.

An answer is given again only to who may still do what was done: the access checks that the first
request passed are recorded with it and made anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete
from sqlmodel import col

from org_server.domain.permissions import Action, Actor
from org_server.services import access
from org_server.store.tables import RepeatedRequestRow
from org_server.store.unit_of_work import JoinedUnits, UnitOfWork, UnitOfWorkFactory
from shared_schema.errors import ErrorCode, InterleafError

KEPT_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class RequestKey:
    """A key, and what it may be used for alone."""

    key: str
    fingerprint: str
    """Of everything that makes the request what it is: method, path, precondition and body."""


@dataclass(frozen=True)
class Done:
    """What a request was answered, as it is recorded."""

    status: int
    body: str | None
    """As it was sent; None where it held a secret and cannot be given again."""
    etag: str | None = None
    project_id: str | None = None
    """A Project that the answer tells about, to be seen by whoever gets it again."""
    secret_id: str | None = None
    """Instead of a body: the token that was issued."""


def once(
    units: UnitOfWorkFactory, actor: Actor, wanted: RequestKey, act: Callable[[UnitOfWorkFactory], Done]
) -> tuple[Done, bool]:
    """Return the answer to a request, and whether it is an earlier one's.

    ``act`` gets the transactions to work in; when it raises, nothing is changed or recorded. Raises
    ``idempotency_mismatch`` for a key that was used for another request, ``already_exists`` where
    the answer held a secret, and what the access checks raise.
    """
    with units.write() as uow:
        session = uow.session
        session.execute(
            delete(RepeatedRequestRow).where(col(RepeatedRequestRow.created_at) <= uow.now - KEPT_MS)
        )
        row = session.get(RepeatedRequestRow, (actor.user_id, wanted.key))
        if row is not None:
            return _again(uow, actor, row, wanted), True
        done = act(JoinedUnits(units, uow))
        checks = [[action, project_id] for action, project_id in dict.fromkeys(uow.checked)]
        if done.project_id is not None:
            checks.append([Action.PROJECT_READ.value, done.project_id])
        uow.add(
            RepeatedRequestRow(
                user_id=actor.user_id,
                key=wanted.key,
                fingerprint=wanted.fingerprint,
                status=done.status,
                answer=done.body,
                etag=done.etag,
                secret_id=done.secret_id,
                checks=checks,
                created_at=uow.now,
            )
        )
        return done, False


def _again(uow: UnitOfWork, actor: Actor, row: RepeatedRequestRow, wanted: RequestKey) -> Done:
    if row.fingerprint != wanted.fingerprint:
        raise InterleafError(
            ErrorCode.IDEMPOTENCY_MISMATCH,
            "This Idempotency-Key was used for another request. Send this one with a new key.",
        )
    actor = access.refresh(uow, actor)
    for action, project_id in row.checks:
        if project_id is None:
            access.require_org(uow, actor, Action(action))
        else:
            access.require_project(uow, actor, Action(action), project_id)
    if row.secret_id is not None:
        raise InterleafError(
            ErrorCode.ALREADY_EXISTS,
            f"The first request with this key issued {row.secret_id}; its secret was in that answer alone. "
            f"Revoke it (DELETE /admin/tokens/{row.secret_id}), then issue another with a new key.",
            details={"token_id": row.secret_id},
        )
    return Done(row.status, row.answer, row.etag)

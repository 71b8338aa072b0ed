"""API tokens: made, checked, listed and revoked.

A token is 256 random bits, so a plain SHA-256 of it is safe to store and to look up by; nothing
that was stored can be turned back into one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from typing import Final

import structlog
from sqlmodel import Session, col, select

from org_server.domain.permissions import Action, Actor
from org_server.services import access, pages
from org_server.services.users import find_user
from org_server.store.tables import ProjectRow, TokenRow, UserRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema import ids
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import Role, TokenCreate, TokenInfo, TokenIssued, TokenPage

DAY_MS: Final = 24 * 60 * 60 * 1000
TOUCH_AFTER_MS: Final = 60_000
"""How stale ``last_used_at`` may be, so that a read costs no write."""
_SECRET: Final = re.compile(r"ilt_[A-Za-z0-9_-]{43}")

_log = structlog.get_logger("interleaf.server")


def authenticate(units: UnitOfWorkFactory, secret: str) -> Actor:
    """Return whom the token stands for.

    One answer for unknown, expired, revoked and disabled: ``unauthenticated``.
    """
    if _SECRET.fullmatch(secret) is None:
        raise InterleafError(ErrorCode.UNAUTHENTICATED)
    digest = _hash(secret)
    with units.read() as uow:
        found = uow.session.exec(
            select(TokenRow, UserRow)
            .join(UserRow, col(UserRow.id) == col(TokenRow.user_id))
            .where(col(TokenRow.hash) == digest)
        ).first()
    if found is None or not hmac.compare_digest(found[0].hash, digest):
        raise InterleafError(ErrorCode.UNAUTHENTICATED)
    token, user = found
    if user.disabled or not _usable(token, uow.now):
        raise InterleafError(ErrorCode.UNAUTHENTICATED)
    if token.last_used_at is None or uow.now - token.last_used_at >= TOUCH_AFTER_MS:
        _touch(units, token.id)
    return Actor(
        user_id=user.id,
        email=user.email,
        org_role=Role(user.role),
        token_id=token.id,
        read_only=token.read_only,
        project_ids=None if token.project_ids is None else frozenset(token.project_ids),
    )


def issue(uow: UnitOfWork, request: TokenCreate, actor_id: str | None) -> TokenIssued:
    """Make a token; the answer holds its secret, for the only time. Permission is the caller's.

    Raises ``not_found`` for an unknown or disabled user and ``invalid_arguments`` for Projects
    that do not exist.
    """
    user = find_user(uow, request.user)
    if user.disabled:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS, f"{user.email} is disabled. Enable the user first, or name another."
        )
    if request.project_ids is not None:
        _check_projects(uow, request.project_ids)
    secret = f"ilt_{base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b'=').decode()}"
    days = request.expires_in_days
    token = TokenRow(
        id=ids.new_id("tok"),
        user_id=user.id,
        hash=_hash(secret),
        label=request.label,
        read_only=request.read_only,
        project_ids=None if request.project_ids is None else sorted(set(request.project_ids)),
        created_at=uow.now,
        expires_at=None if days is None else uow.now + days * DAY_MS,
    )
    uow.add(token)
    uow.audit(
        actor_id,
        "token.issued",
        token.id,
        {"user_id": user.id, "read_only": token.read_only, "project_ids": token.project_ids},
    )
    return TokenIssued(token=secret, info=info(token, user))


def revoke(uow: UnitOfWork, token: TokenRow, actor_id: str | None) -> None:
    """End a token; again does nothing."""
    if token.revoked_at is None:
        token.revoked_at = uow.now
        uow.session.add(token)
        uow.audit(actor_id, "token.revoked", token.id, {"user_id": token.user_id})


def find_token(uow: UnitOfWork, token_id: str) -> tuple[TokenRow, UserRow]:
    """Return a token and its user; ``not_found`` without one."""
    found = uow.session.exec(
        select(TokenRow, UserRow)
        .join(UserRow, col(UserRow.id) == col(TokenRow.user_id))
        .where(col(TokenRow.id) == token_id)
    ).first()
    if found is None:
        raise InterleafError(ErrorCode.NOT_FOUND, "There is no such token.")
    return found


def issue_token(units: UnitOfWorkFactory, actor: Actor, request: TokenCreate) -> TokenIssued:
    """POST /admin/tokens. Only an owner makes a token for an owner: it acts as one."""
    with units.write() as uow:
        now = access.require_org(uow, actor, Action.ORG_MANAGE)
        if Role(find_user(uow, request.user).role) is Role.OWNER:
            access.require_org(uow, now, Action.ORG_OWNERS_MANAGE)
        return issue(uow, request, actor.user_id)


def revoke_token(units: UnitOfWorkFactory, actor: Actor, token_id: str) -> None:
    """DELETE /admin/tokens/{id}."""
    with units.write() as uow:
        now = access.require_org(uow, actor, Action.ORG_MANAGE)
        token, user = find_token(uow, token_id)
        if Role(user.role) is Role.OWNER:
            access.require_org(uow, now, Action.ORG_OWNERS_MANAGE)
        revoke(uow, token, actor.user_id)


def list_tokens(
    units: UnitOfWorkFactory, actor: Actor, page: pages.PageQuery, user: str | None = None
) -> TokenPage:
    """GET /admin/tokens, oldest first."""
    with units.read() as uow:
        access.require_org(uow, actor, Action.ORG_MANAGE)
        return page_of_tokens(uow, page, user)


def page_of_tokens(uow: UnitOfWork, page: pages.PageQuery, user: str | None = None) -> TokenPage:
    """Return one page of all tokens, or of one user's."""
    statement = select(TokenRow, UserRow).join(UserRow, col(UserRow.id) == col(TokenRow.user_id))
    if user is not None:
        statement = statement.where(col(TokenRow.user_id) == find_user(uow, user).id)
    if (after := page.after("tokens", int, str)) is not None:
        created, token_id = after
        statement = statement.where(
            (col(TokenRow.created_at) > created)
            | ((col(TokenRow.created_at) == created) & (col(TokenRow.id) > token_id))
        )
    statement = statement.order_by(col(TokenRow.created_at), col(TokenRow.id)).limit(page.limit + 1)
    rows, cursor = page.cut(
        "tokens", list(uow.session.exec(statement).all()), lambda row: (row[0].created_at, row[0].id)
    )
    return TokenPage(tokens=[info(token, owner) for token, owner in rows], next_cursor=cursor)


def info(token: TokenRow, user: UserRow) -> TokenInfo:
    """Return what may be shown of a token."""
    return TokenInfo(
        token_id=token.id,
        user_id=user.id,
        email=user.email,
        label=token.label,
        read_only=token.read_only,
        project_ids=token.project_ids,
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
        revoked_at=token.revoked_at,
    )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _usable(token: TokenRow, now: int) -> bool:
    return token.revoked_at is None and (token.expires_at is None or now < token.expires_at)


def _check_projects(uow: UnitOfWork, project_ids: list[str]) -> None:
    wanted = set(project_ids)
    known = set(
        uow.session.exec(
            select(ProjectRow.id).where(col(ProjectRow.id).in_(wanted), col(ProjectRow.deleted_at).is_(None))
        )
    )
    if not wanted or wanted != known:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            "A token is limited to Projects that exist, at least one. Check the ids.",
            details={"unknown": sorted(wanted - known)},
        )


def _touch(units: UnitOfWorkFactory, token_id: str) -> None:
    try:
        with units.write() as uow:
            _mark_used(uow.session, token_id, uow.now)
    except InterleafError as error:
        # Worth a line, but no reason to refuse a read: the token is good.
        _log.warning("token_use_not_recorded", token_id=token_id, code=error.code.value)


def _mark_used(session: Session, token_id: str, now: int) -> None:
    token = session.get(TokenRow, token_id)
    if token is not None:
        token.last_used_at = now
        session.add(token)

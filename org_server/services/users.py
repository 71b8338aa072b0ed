"""Users of the Organization."""

from __future__ import annotations

import unicodedata

from pydantic import TypeAdapter, ValidationError
from sqlmodel import col, func, select

from org_server.domain.permissions import Action, Actor, capabilities
from org_server.domain.refs import require_version
from org_server.services import access, pages
from org_server.store.tables import MemberRow, ProjectRow, TokenRow, UserRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema import ids
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import (
    Email,
    FeedEventType,
    Me,
    ProjectRole,
    Role,
    User,
    UserChange,
    UserCreate,
    UserPage,
)

_EMAIL: TypeAdapter[str] = TypeAdapter(Email)


def email_key(email: str) -> str:
    """Return the form by which e-mail addresses are compared."""
    return unicodedata.normalize("NFC", email.strip()).casefold()


def find_user(uow: UnitOfWork, user: str) -> UserRow:
    """Return the user with this id or e-mail address; ``not_found`` without one."""
    wanted = col(UserRow.email_key) == email_key(user) if "@" in user else col(UserRow.id) == user
    row = uow.session.exec(select(UserRow).where(wanted)).first()
    if row is None:
        raise InterleafError(
            ErrorCode.NOT_FOUND,
            "There is no such user in this Organization. An Org admin adds one with: "
            "interleaf-server user add --email ADDRESS",
        )
    return row


def add_user(uow: UnitOfWork, request: UserCreate, actor_id: str | None) -> UserRow:
    """Add a user; ``already_exists`` for a known address. Permission is the caller's."""
    email = request.email.strip()
    try:
        _EMAIL.validate_python(email)
    except ValidationError:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS, "This is no e-mail address; give one such as ada@example.org."
        ) from None
    if (
        uow.session.exec(select(UserRow).where(col(UserRow.email_key) == email_key(email))).first()
        is not None
    ):
        raise InterleafError(
            ErrorCode.ALREADY_EXISTS, f"{email} is a user already. Use it, or give another address."
        )
    row = UserRow(
        id=ids.new_id("usr"),
        email=email,
        email_key=email_key(email),
        name=request.name or email.partition("@")[0],
        role=request.role.value,
        created_at=uow.now,
    )
    uow.add(row)
    uow.audit(actor_id, "user.added", row.id, {"email": row.email, "role": row.role})
    return row


def change_user(uow: UnitOfWork, row: UserRow, change: UserChange, actor_id: str | None) -> None:
    """Change role or access; the last Org owner keeps both. Permission is the caller's."""
    role = change.role.value if change.role is not None else row.role
    disabled = change.disabled if change.disabled is not None else row.disabled
    if (role, disabled) == (row.role, row.disabled):
        return
    was_owner = row.role == Role.OWNER and not row.disabled
    stays_owner = role == Role.OWNER and not disabled
    if was_owner and not stays_owner and _owners(uow) <= 1:
        raise InterleafError(
            ErrorCode.LAST_OWNER,
            f"{row.email} is the last owner of the Organization. Make somebody else an owner first.",
        )
    row.role, row.disabled, row.version = role, disabled, row.version + 1
    uow.session.add(row)
    uow.audit(actor_id, "user.changed", row.id, {"role": role, "disabled": disabled})
    # What an Org owner or admin sees of the Projects hangs on the role.
    uow.emit(FeedEventType.MEMBERSHIP_CHANGED, user_id=row.id, audience="author")


def create_user(units: UnitOfWorkFactory, actor: Actor, request: UserCreate) -> User:
    """POST /admin/users. Only an owner makes an owner."""
    with units.write() as uow:
        now = access.require_org(uow, actor, Action.ORG_MANAGE)
        if request.role is Role.OWNER:
            access.require_org(uow, now, Action.ORG_OWNERS_MANAGE)
        return view(add_user(uow, request, actor.user_id))


def update_user(
    units: UnitOfWorkFactory, actor: Actor, user_id: str, change: UserChange, expected: int
) -> User:
    """PATCH /admin/users/{id}. Only an owner changes an owner or makes one."""
    with units.write() as uow:
        now = access.require_org(uow, actor, Action.ORG_MANAGE)
        row = _by_id(uow, user_id)
        if Role.OWNER in {Role(row.role), change.role}:
            access.require_org(uow, now, Action.ORG_OWNERS_MANAGE)
        require_version(expected, row.version)
        change_user(uow, row, change, actor.user_id)
        return view(row)


def read_user(units: UnitOfWorkFactory, actor: Actor, user_id: str) -> User:
    """GET /admin/users/{id}."""
    with units.read() as uow:
        access.require_org(uow, actor, Action.ORG_MANAGE)
        return view(_by_id(uow, user_id))


def list_users(units: UnitOfWorkFactory, actor: Actor, page: pages.PageQuery) -> UserPage:
    """GET /admin/users, by e-mail address."""
    with units.read() as uow:
        access.require_org(uow, actor, Action.ORG_MANAGE)
        return page_of_users(uow, page)


def page_of_users(uow: UnitOfWork, page: pages.PageQuery) -> UserPage:
    """Return one page of all users."""
    statement = select(UserRow).order_by(col(UserRow.email_key)).limit(page.limit + 1)
    if (after := page.after("users", str)) is not None:
        statement = statement.where(col(UserRow.email_key) > after[0])
    rows, cursor = page.cut("users", uow.session.exec(statement).all(), lambda row: (row.email_key,))
    return UserPage(users=[view(row) for row in rows], next_cursor=cursor)


def read_me(units: UnitOfWorkFactory, actor: Actor) -> Me:
    """GET /me: who the caller is and what it may do."""
    with units.read() as uow:
        now = access.refresh(uow, actor)
        user = _by_id(uow, actor.user_id)
        token = uow.session.get(TokenRow, actor.token_id)
        rows = uow.session.exec(
            select(ProjectRow.id, ProjectRow.name, MemberRow.role)
            .join(MemberRow, col(MemberRow.project_id) == col(ProjectRow.id))
            .where(col(MemberRow.user_id) == user.id, col(ProjectRow.deleted_at).is_(None))
            .order_by(col(ProjectRow.name_key))
        ).all()
        return Me(
            user_id=user.id,
            email=user.email,
            name=user.name,
            org_id=uow.org.id,
            org_name=uow.org.name,
            org_role=now.org_role,
            read_only=now.read_only,
            expires_at=None if token is None else token.expires_at,
            capabilities=capabilities(now),
            projects=[
                ProjectRole(project_id=project_id, name=name, role=Role(role))
                for project_id, name, role in rows
                if now.reaches(project_id)
            ],
        )


def view(row: UserRow) -> User:
    """Return a user as an Org admin sees it."""
    return User(
        user_id=row.id,
        email=row.email,
        name=row.name,
        role=Role(row.role),
        disabled=row.disabled,
        created_at=row.created_at,
        version=row.version,
    )


def _owners(uow: UnitOfWork) -> int:
    statement = (
        select(func.count())
        .select_from(UserRow)
        .where(col(UserRow.role) == Role.OWNER.value, col(UserRow.disabled).is_(False))
    )
    return uow.session.exec(statement).one()


def _by_id(uow: UnitOfWork, user_id: str) -> UserRow:
    row = uow.session.get(UserRow, user_id)
    if row is None:
        raise InterleafError(ErrorCode.NOT_FOUND, "There is no such user in this Organization.")
    return row

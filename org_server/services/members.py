"""Members of a Project."""

from __future__ import annotations

from sqlmodel import col, func, select

from org_server.domain.permissions import Action, Actor
from org_server.services import access, pages
from org_server.services.users import email_key
from org_server.store.tables import MemberRow, UserRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import FeedEventType, Member, MemberAdd, MemberPage, Role


def list_members(
    units: UnitOfWorkFactory, actor: Actor, project_id: str, page: pages.PageQuery
) -> MemberPage:
    """GET /projects/{id}/members, by e-mail address."""
    with units.read() as uow:
        access.require_project(uow, actor, Action.PROJECT_READ, project_id)
        statement = (
            select(MemberRow, UserRow)
            .join(UserRow, col(UserRow.id) == col(MemberRow.user_id))
            .where(col(MemberRow.project_id) == project_id)
            .order_by(col(UserRow.email_key))
            .limit(page.limit + 1)
        )
        if (after := page.after("members", str)) is not None:
            statement = statement.where(col(UserRow.email_key) > after[0])
        rows, cursor = page.cut("members", list(uow.session.exec(statement)), lambda row: (row[1].email_key,))
        return MemberPage(members=[_view(member, user) for member, user in rows], next_cursor=cursor)


def add_member(units: UnitOfWorkFactory, actor: Actor, project_id: str, request: MemberAdd) -> Member:
    """POST /projects/{id}/members: somebody who is a user of the Organization already."""
    with units.write() as uow:
        _require(uow, actor, project_id, request.role)
        user = _invitable(uow, request.email)
        if uow.session.get(MemberRow, (project_id, user.id)) is not None:
            raise InterleafError(
                ErrorCode.ALREADY_EXISTS, f"{user.email} is a member already. Change the role instead."
            )
        member = MemberRow(
            project_id=project_id, user_id=user.id, role=request.role.value, created_at=uow.now
        )
        uow.add(member)
        _tell(uow, actor, "member.added", member)
        return _view(member, user)


def change_member(
    units: UnitOfWorkFactory, actor: Actor, project_id: str, user_id: str, role: Role
) -> Member:
    """PATCH /projects/{id}/members/{user}: the last owner stays one."""
    with units.write() as uow:
        member, user = _member(uow, actor, project_id, user_id, role)
        if member.role != role.value:
            _keep_an_owner(uow, member, user, leaves=role is not Role.OWNER)
            member.role = role.value
            uow.session.add(member)
            _tell(uow, actor, "member.changed", member)
        return _view(member, user)


def remove_member(units: UnitOfWorkFactory, actor: Actor, project_id: str, user_id: str) -> None:
    """DELETE /projects/{id}/members/{user}: the last owner stays."""
    with units.write() as uow:
        member, user = _member(uow, actor, project_id, user_id, None)
        _keep_an_owner(uow, member, user, leaves=True)
        uow.session.delete(member)
        _tell(uow, actor, "member.removed", member)


def _require(uow: UnitOfWork, actor: Actor, project_id: str, *roles: Role | str | None) -> None:
    """Check that the caller may give or take these roles."""
    access.require_project(uow, actor, Action.PROJECT_MANAGE, project_id)
    if Role.OWNER in roles:
        access.require_project(uow, actor, Action.PROJECT_OWNERS_MANAGE, project_id)


def _member(
    uow: UnitOfWork, actor: Actor, project_id: str, user_id: str, new_role: Role | None
) -> tuple[MemberRow, UserRow]:
    _require(uow, actor, project_id)
    member = uow.session.get(MemberRow, (project_id, user_id))
    user = uow.session.get(UserRow, user_id)
    if member is None or user is None:
        raise InterleafError(ErrorCode.NOT_FOUND, "There is no such member of this Project.")
    _require(uow, actor, project_id, member.role, new_role)
    return member, user


def _invitable(uow: UnitOfWork, email: str) -> UserRow:
    user = uow.session.exec(select(UserRow).where(col(UserRow.email_key) == email_key(email))).first()
    if user is None or user.disabled:
        why = "is not a user of this Organization" if user is None else "is disabled in this Organization"
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"{email} {why}. An Org admin has to add or enable the user first: "
            f"interleaf-server user add --email {email}",
            details={"fields": [{"field": "email", "problem": why}]},
        )
    return user


def _keep_an_owner(uow: UnitOfWork, member: MemberRow, user: UserRow, *, leaves: bool) -> None:
    if member.role != Role.OWNER or not leaves:
        return
    others = uow.session.exec(
        select(func.count())
        .select_from(MemberRow)
        .join(UserRow, col(UserRow.id) == col(MemberRow.user_id))
        .where(
            col(MemberRow.project_id) == member.project_id,
            col(MemberRow.role) == Role.OWNER.value,
            col(MemberRow.user_id) != member.user_id,
            col(UserRow.disabled).is_(False),
        )
    ).one()
    if others == 0:
        raise InterleafError(
            ErrorCode.LAST_OWNER,
            f"{user.email} is the last owner of this Project. Make somebody else an owner first.",
        )


def _tell(uow: UnitOfWork, actor: Actor, action: str, member: MemberRow) -> None:
    uow.audit(actor.user_id, action, member.project_id, {"user_id": member.user_id, "role": member.role})
    uow.emit(FeedEventType.MEMBERSHIP_CHANGED, project_id=member.project_id, user_id=member.user_id)


def _view(member: MemberRow, user: UserRow) -> Member:
    return Member(user_id=user.id, email=user.email, name=user.name, role=Role(member.role))

"""Permission checks inside the transaction of the effect, with the roles as they are now."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlmodel import col, select

from org_server.domain import permissions
from org_server.domain.permissions import Action, Actor
from org_server.store.tables import MemberRow, ProjectRow, TokenRow, UserRow
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import Role


@dataclass(frozen=True, slots=True)
class ProjectAccess:
    """A Project that the caller sees, and as what."""

    project: ProjectRow
    role: Role | None
    actor: Actor
    """The caller with the Org role of now."""


def refresh(uow: UnitOfWork, actor: Actor) -> Actor:
    """Return the caller as it stands now; ``unauthenticated`` once disabled or revoked.

    Between the check of the token and this transaction an admin may have changed either.
    """
    statement = (
        select(UserRow.role, UserRow.disabled, TokenRow.revoked_at)
        .join(TokenRow, col(TokenRow.user_id) == col(UserRow.id))
        .where(col(UserRow.id) == actor.user_id, col(TokenRow.id) == actor.token_id)
    )
    found = uow.session.exec(statement).first()
    if found is None or found[1] or found[2] is not None:
        raise InterleafError(ErrorCode.UNAUTHENTICATED)
    return replace(actor, org_role=Role(found[0]))


def project_role(uow: UnitOfWork, project_id: str, user_id: str) -> Role | None:
    """Return the user's role in the Project; None without membership."""
    role = uow.session.exec(
        select(MemberRow.role).where(
            col(MemberRow.project_id) == project_id, col(MemberRow.user_id) == user_id
        )
    ).first()
    return None if role is None else Role(role)


def require_org(uow: UnitOfWork, actor: Actor, action: Action) -> Actor:
    """Check an action on the Organization and return the caller as it stands now."""
    now = refresh(uow, actor)
    permissions.require(now, action)
    uow.checked.append((action.value, None))
    return now


def require_project(uow: UnitOfWork, actor: Actor, action: Action, project_id: str) -> ProjectAccess:
    """Check an action on a Project (or on an Org Review that it carries) and return the Project.

    Raises ``not_found`` for a Project that is deleted, unknown or invisible to the caller.
    """
    now = refresh(uow, actor)
    project = uow.session.get(ProjectRow, project_id)
    if project is None or project.deleted_at is not None:
        raise InterleafError(ErrorCode.NOT_FOUND, "There is no such Project, or it is not yours to see.")
    role = project_role(uow, project_id, actor.user_id)
    permissions.require(now, action, project_id=project_id, project_role=role)
    uow.checked.append((action.value, project_id))
    return ProjectAccess(project, role, now)

"""The Projects that a caller may read, as the transaction sees them."""

from typing import NamedTuple

from sqlmodel import col, select

from org_server.domain.permissions import Action, Actor, allows
from org_server.store.tables import MemberRow, ProjectRow
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.org_contract import Role


class ReadableProject(NamedTuple):
    """One Project and the caller's own role in it."""

    project: ProjectRow
    role: Role | None


def readable_projects(uow: UnitOfWork, actor: Actor) -> list[ReadableProject]:
    """Return every Project that the caller may read now, by id."""
    statement = (
        select(ProjectRow, MemberRow.role)
        .outerjoin(
            MemberRow,
            (col(MemberRow.project_id) == col(ProjectRow.id)) & (col(MemberRow.user_id) == actor.user_id),
        )
        .where(col(ProjectRow.deleted_at).is_(None))
        .order_by(col(ProjectRow.id))
    )
    if not allows(Action.PROJECT_READ, actor.org_role):
        statement = statement.where(col(MemberRow.role).is_not(None))
    if actor.project_ids is not None:
        statement = statement.where(col(ProjectRow.id).in_(sorted(actor.project_ids)))
    rows = uow.session.exec(statement)
    return [ReadableProject(project, None if role is None else Role(role)) for project, role in rows]

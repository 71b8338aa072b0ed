"""Projects: listed, created, changed and deleted."""

from __future__ import annotations

from sqlalchemy import ColumnElement
from sqlmodel import col, delete, select

from org_server.domain.permissions import Action, Actor, allows
from org_server.domain.refs import require_version
from org_server.services import access, pages
from org_server.store.tables import MemberRow, ProjectRow, SelectionRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema import ids
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import (
    FeedEventType,
    Policy,
    Project,
    ProjectChange,
    ProjectCreate,
    ProjectPage,
    Ref,
    Role,
)
from shared_schema.rules.paths import normalise_path, path_key


def list_projects(
    units: UnitOfWorkFactory, actor: Actor, page: pages.PageQuery, name: str | None = None
) -> ProjectPage:
    """GET /projects: those that the caller sees, by name; ``name`` keeps the one of that name."""
    with units.read() as uow:
        now = access.refresh(uow, actor)
        statement = (
            select(ProjectRow, MemberRow.role)
            .outerjoin(
                MemberRow,
                (col(MemberRow.project_id) == col(ProjectRow.id)) & (col(MemberRow.user_id) == now.user_id),
            )
            .where(*_visible(now))
            .order_by(col(ProjectRow.name_key))
            .limit(page.limit + 1)
        )
        if name is not None:
            statement = statement.where(col(ProjectRow.name_key) == path_key(name.strip()))
        if (after := page.after("projects", str)) is not None:
            statement = statement.where(col(ProjectRow.name_key) > after[0])
        rows, cursor = page.cut("projects", list(uow.session.exec(statement)), lambda row: (row[0].name_key,))
        return ProjectPage(
            projects=[view(project, None if role is None else Role(role)) for project, role in rows],
            next_cursor=cursor,
        )


def create_project(units: UnitOfWorkFactory, actor: Actor, request: ProjectCreate) -> Project:
    """POST /projects: the caller becomes its owner; ``already_exists`` for a name in use."""
    with units.write() as uow:
        access.require_org(uow, actor, Action.PROJECT_CREATE)
        name = _checked_name(uow, request.name)
        project = ProjectRow(
            id=ids.new_id("prj"),
            name=name,
            name_key=path_key(name),
            guide_path=normalise_path(request.guide_path),
            created_at=uow.now,
        )
        uow.add(project)
        uow.add(
            MemberRow(project_id=project.id, user_id=actor.user_id, role=Role.OWNER.value, created_at=uow.now)
        )
        uow.audit(actor.user_id, "project.created", project.id, {"name": name})
        uow.emit(FeedEventType.MEMBERSHIP_CHANGED, project_id=project.id, user_id=actor.user_id)
        return view(project, Role.OWNER)


def read_project(units: UnitOfWorkFactory, actor: Actor, project_id: str) -> Project:
    """GET /projects/{id}."""
    with units.read() as uow:
        seen = access.require_project(uow, actor, Action.PROJECT_READ, project_id)
        return view(seen.project, seen.role)


def update_project(
    units: UnitOfWorkFactory, actor: Actor, project_id: str, change: ProjectChange, expected: int
) -> Project:
    """PATCH /projects/{id}: only the fields that are given."""
    with units.write() as uow:
        seen = access.require_project(uow, actor, Action.PROJECT_MANAGE, project_id)
        project = seen.project
        require_version(expected, project.version)
        changed = _changed_fields(uow, project, change)
        if changed:
            for field, value in changed.items():
                setattr(project, field, value)
            project.version += 1
            uow.session.add(project)
            told = {field: value for field, value in changed.items() if field != "name_key"}
            uow.audit(actor.user_id, "project.changed", project.id, told)
            # Readers see name and guide path in the list of their Projects, so their cursor moves.
            uow.emit(FeedEventType.MEMBERSHIP_CHANGED, project_id=project.id)
        return view(project, seen.role)


def delete_project(units: UnitOfWorkFactory, actor: Actor, project_id: str, expected: int) -> None:
    """DELETE /projects/{id}: it disappears for everybody, and its name is free again."""
    with units.write() as uow:
        seen = access.require_project(uow, actor, Action.PROJECT_DELETE, project_id)
        require_version(expected, seen.project.version)
        seen.project.deleted_at = uow.now
        seen.project.version += 1
        uow.session.add(seen.project)
        # Nothing published to the Organization reaches it any more.
        uow.session.execute(delete(SelectionRow).where(col(SelectionRow.project_id) == project_id))
        members = uow.session.exec(
            select(MemberRow.user_id).where(col(MemberRow.project_id) == project_id)
        ).all()
        for user_id in sorted(members):
            uow.emit(FeedEventType.MEMBERSHIP_CHANGED, project_id=project_id, user_id=user_id)
        uow.audit(actor.user_id, "project.deleted", project_id, {"name": seen.project.name})


def view(row: ProjectRow, role: Role | None) -> Project:
    """Return the Project as a reader with this role sees it."""
    return Project(
        project_id=row.id,
        name=row.name,
        guide_path=row.guide_path,
        policy=Policy(required_approvals=row.required_approvals, allow_self_approval=row.allow_self_approval),
        ref=Ref(owner=row.id, commit_id=row.head_commit, seq=row.head_seq),
        role=role,
        version=row.version,
        created_at=row.created_at,
    )


def _visible(actor: Actor) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [col(ProjectRow.deleted_at).is_(None)]
    if not allows(Action.PROJECT_READ, actor.org_role):
        conditions.append(col(MemberRow.role).is_not(None))
    if actor.project_ids is not None:
        conditions.append(col(ProjectRow.id).in_(actor.project_ids))
    return conditions


def _changed_fields(uow: UnitOfWork, project: ProjectRow, change: ProjectChange) -> dict[str, object]:
    wanted: dict[str, object] = change.model_dump(exclude_none=True)
    if change.name is not None:
        wanted["name"] = _checked_name(uow, change.name, own_id=project.id)
        wanted["name_key"] = path_key(str(wanted["name"]))
    if change.guide_path is not None:
        wanted["guide_path"] = normalise_path(change.guide_path)
    return {field: value for field, value in wanted.items() if getattr(project, field) != value}


def _checked_name(uow: UnitOfWork, raw: str, own_id: str | None = None) -> str:
    name = raw.strip()
    if not name or not name.isprintable():
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            "A Project needs a name that can be read: not blank, without control characters.",
            details={"fields": [{"field": "name", "problem": "blank or not printable"}]},
        )
    taken = uow.session.exec(
        select(ProjectRow.id).where(
            col(ProjectRow.name_key) == path_key(name), col(ProjectRow.deleted_at).is_(None)
        )
    ).first()
    if taken is not None and taken != own_id:
        # No id in the details: the caller may not be allowed to see that Project.
        raise InterleafError(
            ErrorCode.ALREADY_EXISTS,
            f"A Project named {name} exists already (names are compared without case). Choose another.",
        )
    return name

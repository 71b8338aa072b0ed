"""Which Org resources a Project selects: the whole set, by compare-and-swap on its revision."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlmodel import col, delete, insert, update

from org_server.domain.adaptations import reference_changes
from org_server.domain.permissions import Action, Actor
from org_server.domain.refs import require_version
from org_server.domain.view_changes import ViewChange, hide_reference, show_reference
from org_server.services import access
from org_server.services.memories import selected_ids, summaries
from org_server.services.publish import publish_commit
from org_server.store.batches import batches
from org_server.store.commits import commit_ids
from org_server.store.tables import ProjectRow, SelectionRow, VersionRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from org_server.store.versions import current_versions, find_clashes, live_adaptations, state_of
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import FeedEventType, Selections, SelectionsPut

_NAMED = 20
"""Offending resources that an error names at most."""


def read_selections(units: UnitOfWorkFactory, actor: Actor, project_id: str) -> Selections:
    """GET /projects/{id}/org-selections: the set, with sources hidden by an adaptation too."""
    with units.read() as uow:
        seen = access.require_project(uow, actor, Action.PROJECT_READ, project_id)
        return _view(uow, seen.project, selected_ids(uow, project_id))


def put_selections(
    units: UnitOfWorkFactory, actor: Actor, project_id: str, request: SelectionsPut, expected: int
) -> Selections:
    """PUT /projects/{id}/org-selections: replace the set and publish what that changes in the view.

    Raises ``version_conflict`` unless ``expected`` is the present revision,
    ``memory_resource_not_found`` for ids that the Organization does not publish, and
    ``path_occupied`` where a path is taken in the Project. Every success is a new revision.
    """
    with units.write() as uow:
        seen = access.require_project(uow, actor, Action.PROJECT_MANAGE, project_id)
        require_version(expected, seen.project.selection_revision)
        wanted = _published(uow, request.resource_ids)
        before = selected_ids(uow, project_id)
        _store(uow, project_id, before, set(wanted), expected)
        changes = _view_changes(uow, project_id, before ^ set(wanted), wanted)
        if changes:
            publish_commit(uow, project_id, changes, actor.user_id)
        uow.session.refresh(seen.project)
        data = {"added": sorted(set(wanted) - before), "removed": sorted(before - set(wanted))}
        uow.audit(actor.user_id, "selection.changed", project_id, data)
        uow.emit(FeedEventType.SELECTION_CHANGED, project_id=project_id)
        return _view(uow, seen.project, set(wanted))


def _published(uow: UnitOfWork, resource_ids: Collection[str]) -> dict[str, VersionRow]:
    wanted = set(resource_ids)
    if len(wanted) != len(resource_ids):
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            "A resource is selected twice.",
            details={"fields": [{"field": "resource_ids", "problem": "holds an id more than once"}]},
        )
    rows = current_versions(uow, uow.org.id, wanted)
    live = {resource_id: row for resource_id, row in rows.items() if not row.removed}
    if unknown := sorted(wanted - set(live)):
        raise InterleafError(
            ErrorCode.MEMORY_RESOURCE_NOT_FOUND,
            "The Organization publishes no such resource. Leave it out of the selection.",
            details={"resource_ids": unknown[:_NAMED]},
        )
    return live


def _store(uow: UnitOfWork, project_id: str, before: set[str], after: set[str], expected: int) -> None:
    moved = uow.session.execute(
        update(ProjectRow)
        .where(col(ProjectRow.id) == project_id, col(ProjectRow.selection_revision) == expected)
        .values(selection_revision=expected + 1)
        .execution_options(synchronize_session=False)
    )
    if moved.rowcount != 1:  # type: ignore[attr-defined]  # an UPDATE's result has it; Session.execute promises less
        raise InterleafError(ErrorCode.VERSION_CONFLICT)
    for batch in batches(sorted(before - after)):
        uow.session.execute(
            delete(SelectionRow).where(
                col(SelectionRow.project_id) == project_id, col(SelectionRow.resource_id).in_(batch)
            )
        )
    for batch in batches(sorted(after - before)):
        uow.session.execute(
            insert(SelectionRow),
            [
                {"project_id": project_id, "resource_id": resource_id, "created_at": uow.now}
                for resource_id in batch
            ],
        )


def _view_changes(
    uow: UnitOfWork, project_id: str, touched: set[str], wanted: Mapping[str, VersionRow]
) -> list[ViewChange]:
    present = current_versions(uow, project_id, touched)
    changes = reference_changes(
        touched,
        selected=wanted,
        published=wanted,
        adapted=live_adaptations(uow, project_id, touched),
        shown={resource_id for resource_id, row in present.items() if not row.removed},
    )
    _check_paths(uow, project_id, {shown: wanted[shown].path for shown in changes.show}, changes.hide)
    commits = commit_ids(uow, uow.org.id, [wanted[shown].from_seq for shown in changes.show])
    shown = [
        show_reference(each, state_of(wanted[each]), commits[wanted[each].from_seq]) for each in changes.show
    ]
    return shown + [hide_reference(each) for each in changes.hide]


def _check_paths(
    uow: UnitOfWork, project_id: str, paths: Mapping[str, str], leaving: Collection[str]
) -> None:
    clashes = find_clashes(uow, project_id, paths, leaving)
    if clashes:
        named = [
            {"resource_id": each, "path": paths[each], "occupied_by": clashes[each]}
            for each in sorted(clashes)[:_NAMED]
        ]
        raise InterleafError(
            ErrorCode.PATH_OCCUPIED,
            f"The path {named[0]['path']} is taken in this Project. Rename the Project's resource, "
            "or leave that reference out.",
            details={"clashes": named},
        )


def _view(uow: UnitOfWork, project: ProjectRow, selected: Collection[str]) -> Selections:
    rows = current_versions(uow, uow.org.id, selected).values()
    ordered = sorted(rows, key=lambda row: (row.path_key, row.resource_id))
    return Selections(revision=project.selection_revision, resources=summaries(uow, ordered))

"""What merging a Review would change: in its authority's view, and in every Project that shows it.

The same plan answers a reader's question ("may this be merged?") and is carried out by the merge.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlmodel import col, select

from org_server.domain.adaptations import link_adaptations, reference_changes
from org_server.domain.states import HashedState
from org_server.domain.view_changes import ViewChange, hide_reference, show_reference
from org_server.services.draft_views import DraftView
from org_server.store.batches import batches
from org_server.store.commits import commit_ids
from org_server.store.tables import ProjectRow, ReviewRow, SelectionRow
from org_server.store.unit_of_work import UnitOfWork
from org_server.store.versions import current_versions, find_clashes, live_adaptations, state_of
from shared_schema.memory import Scope


@dataclass(frozen=True)
class Clash:
    """A path that cannot be taken: by which resource, and in which Project if not in the target."""

    path: str
    holder: str
    project_id: str | None = None


@dataclass(frozen=True)
class ProjectEffect:
    """What an Org merge does to one Project: see `MergePlan`."""

    project: ProjectRow
    show: Mapping[str, HashedState]
    hide: Sequence[str]
    select: Sequence[str]
    deselect: Sequence[str]
    adapted: Sequence[str]
    """Sources that changed behind an adaptation of this Project; its view stays as it is."""


@dataclass(frozen=True)
class MergePlan:
    """Changes of the target's view, effects on Projects (Org scope), and what stands in the way."""

    changes: Sequence[ViewChange]
    effects: Sequence[ProjectEffect] = ()
    clashes: Mapping[str, Clash] = field(default_factory=dict)
    """By the resource id of the Draft that causes it."""
    rivals: Mapping[str, str] = field(default_factory=dict)
    """Resource id of an adaptation → the other one of the same source."""


def plan_merge(uow: UnitOfWork, review: ReviewRow, views: Sequence[DraftView]) -> MergePlan:
    """Return what merging these Drafts now would do; nothing is written."""
    if Scope(review.scope) is Scope.ORG:
        return _plan_org(uow, review, views)
    return _plan_project(uow, review.project_id, views)


def _plan_project(uow: UnitOfWork, project_id: str, views: Sequence[DraftView]) -> MergePlan:
    changes = [ViewChange(view.row.resource_id, Scope.PROJECT, view.state) for view in views]
    source_after = {view.row.resource_id: view.state.source_id for view in views}
    causes = {
        source: view.row.resource_id
        for view in views
        for source in (view.current.source_id, view.state.source_id)
        if source is not None
    }
    active = live_adaptations(uow, project_id, causes)
    links = link_adaptations(active, source_after)
    references, shown_paths = _reference_changes(uow, project_id, causes, links.active)
    wanted = {view.row.resource_id: view.state.path for view in views if view.state.exists} | shown_paths
    leaving = [change.resource_id for change in (*changes, *references)]
    # A returning reference is in the way because of the Draft that ends its adaptation.
    clashes = {
        causes.get(resource_id, resource_id): Clash(wanted[resource_id], holder)
        for resource_id, holder in find_clashes(uow, project_id, wanted, leaving).items()
    }
    return MergePlan([*changes, *references], clashes=clashes, rivals=links.rivals)


def _reference_changes(
    uow: UnitOfWork, project_id: str, sources: Iterable[str], adapted: Mapping[str, str]
) -> tuple[list[ViewChange], dict[str, str]]:
    """Return how Org references enter and leave a Project's view, and the paths of those that enter."""
    touched = sorted(set(sources))
    rows = current_versions(uow, uow.org.id, touched)
    published = {each: row for each, row in rows.items() if not row.removed}
    changes = reference_changes(
        touched,
        selected=_selected(uow, project_id, touched),
        published=published,
        adapted=adapted,
        shown=_shown(uow, project_id, touched),
    )
    commits = commit_ids(uow, uow.org.id, (published[each].from_seq for each in changes.show))
    shown = [
        show_reference(each, state_of(published[each]), commits[published[each].from_seq])
        for each in changes.show
    ]
    paths = {each: published[each].path for each in changes.show}
    return shown + [hide_reference(each) for each in changes.hide], paths


def _plan_org(uow: UnitOfWork, review: ReviewRow, views: Sequence[DraftView]) -> MergePlan:
    changes = [ViewChange(view.row.resource_id, Scope.ORG, view.state) for view in views]
    wanted = {view.row.resource_id: view.state.path for view in views if view.state.exists}
    touched = [view.row.resource_id for view in views]
    found = find_clashes(uow, uow.org.id, wanted, touched)
    clashes = {resource_id: Clash(wanted[resource_id], holder) for resource_id, holder in found.items()}
    effects = []
    # What a contribution creates came from the carrying Project, which has it already as its own.
    carrier = review.project_id if review.contribution_of is None else None
    for project in _touched_projects(uow, carrier, views):
        effect = _project_effect(uow, project, views, carries=project.id == carrier)
        paths = {resource_id: state.path for resource_id, state in effect.show.items()}
        for resource_id, holder in find_clashes(uow, project.id, paths, effect.hide).items():
            clashes.setdefault(resource_id, Clash(paths[resource_id], holder, project.id))
        effects.append(effect)
    return MergePlan(changes, effects, clashes)


def _touched_projects(uow: UnitOfWork, carrier: str | None, views: Sequence[DraftView]) -> list[ProjectRow]:
    """Return every Project that selects a touched resource, and the carrier of a new one, by id."""
    ids: set[str] = set()
    if carrier is not None and any(not view.current.exists for view in views):
        ids.add(carrier)
    for batch in batches(view.row.resource_id for view in views):
        ids.update(
            uow.session.exec(
                select(SelectionRow.project_id).where(col(SelectionRow.resource_id).in_(batch)).distinct()
            )
        )
    projects: list[ProjectRow] = []
    for batch in batches(sorted(ids)):
        projects += uow.session.exec(
            select(ProjectRow)
            .where(col(ProjectRow.id).in_(batch), col(ProjectRow.deleted_at).is_(None))
            .order_by(col(ProjectRow.id))
        )
    return projects


def _project_effect(
    uow: UnitOfWork, project: ProjectRow, views: Sequence[DraftView], *, carries: bool
) -> ProjectEffect:
    touched = [view.row.resource_id for view in views]
    selected = _selected(uow, project.id, touched)
    created = {view.row.resource_id for view in views if carries and not view.current.exists}
    deleted = {view.row.resource_id for view in views if not view.state.exists}
    adapted = live_adaptations(uow, project.id, touched)
    shown = _shown(uow, project.id, touched)
    show = {
        view.row.resource_id: view.state
        for view in views
        if view.state.exists
        and view.row.resource_id in selected | created
        and view.row.resource_id not in adapted
    }
    return ProjectEffect(
        project=project,
        show=show,
        hide=sorted(shown & deleted),
        select=sorted(created - selected),
        deselect=sorted(selected & deleted),
        adapted=sorted(set(touched) & set(adapted)),
    )


def _selected(uow: UnitOfWork, project_id: str, resource_ids: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for batch in batches(resource_ids):
        found.update(
            uow.session.exec(
                select(SelectionRow.resource_id).where(
                    col(SelectionRow.project_id) == project_id, col(SelectionRow.resource_id).in_(batch)
                )
            )
        )
    return found


def _shown(uow: UnitOfWork, project_id: str, resource_ids: Sequence[str]) -> set[str]:
    rows = current_versions(uow, project_id, resource_ids)
    return {each for each, row in rows.items() if not row.removed and row.scope == Scope.ORG.value}

"""Bringing one Project's published state to the server's: verified commits, or a whole snapshot.

What is applied, the commit that it stands for and the projection's version change in one
transaction. A step that does not verify is not applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from client.store.projects import ProjectRow
from client.store.unit_of_work import Store
from client.sync.org_client import OrgClient
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import PublishedResource
from shared_schema.org_contract import CommitChange, CommitRecord, Ref
from shared_schema.rules.chain import Change, verify_step

MASS_REMOVAL_FLOOR: Final = 20
"""In a Project of so many resources a step that removes more than half is read twice."""


@dataclass(frozen=True, slots=True)
class _Step:
    """Changes to apply, and the commit that the Project then stands at."""

    ref: Ref
    changed: dict[str, PublishedResource]
    removed: set[str]
    complete: bool = False
    """A snapshot: what it does not name is gone."""


class Puller:
    """Reads published state from the server into the store. Clock in epoch ms."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock

    def behind(self) -> list[ProjectRow]:
        """Return the Projects whose published state is not the one that the server told of last."""
        with self._store.read() as uow:
            return [
                project
                for project in uow.projects.all()
                if project.access
                and (project.snapshot_at is None or project.installed_commit != project.head_commit)
            ]

    def pull(
        self, client: OrgClient, project: ProjectRow, *, snapshot: bool, stopping: Callable[[], bool]
    ) -> bool:
        """Bring one Project up to date; return whether what it shows changed.

        Raises what the server answered, and ``chain_broken``; the state before stays then.
        """
        if snapshot or project.snapshot_at is None or project.installed_commit is None:
            return self._pull_snapshot(client, project)
        try:
            return self._pull_commits(client, project, stopping)
        except InterleafError as error:
            if error.code is not ErrorCode.COMMIT_UNKNOWN:
                raise
            return self._pull_snapshot(client, project)

    def _pull_commits(self, client: OrgClient, project: ProjectRow, stopping: Callable[[], bool]) -> bool:
        changed = False
        while not stopping():
            after = project.installed_commit
            page = client.commits(project.project_id, after)
            # Not beyond what the feed told: the fate of own Drafts is known up to there only.
            step = _verified(project, [each for each in page.commits if each.seq <= project.head_seq])
            if step is None:
                break
            if self._removes_most(project, step):
                again = client.commits(project.project_id, after)
                if [each.commit_id for each in again.commits] != [each.commit_id for each in page.commits]:
                    raise _unconfirmed(project)
            project = self._install(project, step)
            changed = True
            if not page.has_more:
                break
        return changed

    def _pull_snapshot(self, client: OrgClient, project: ProjectRow) -> bool:
        step = _snapshot_step(client, project)
        if self._removes_most(project, step):
            again = _snapshot_step(client, project)
            if again.ref != step.ref or again.changed != step.changed:
                raise _unconfirmed(project)
        self._install(project, step)
        return True

    def _removes_most(self, project: ProjectRow, step: _Step) -> bool:
        project_id = project.project_id
        with self._store.read() as uow:
            present = uow.published.count(project_id)
            if present < MASS_REMOVAL_FLOOR:
                return False
            if step.complete:
                kept = len(uow.published.some(project_id, step.changed.keys()))
                return (present - kept) * 2 > present
            return len(uow.published.some(project_id, step.removed)) * 2 > present

    def _install(self, project: ProjectRow, step: _Step) -> ProjectRow:
        now = self._clock()
        project_id = project.project_id
        with self._store.write() as uow:
            known = uow.projects.get(project_id)
            if known is None or not known.access:
                return project  # Access went while this was read; nothing of it may come back.
            if step.complete:
                uow.published.replace_all(project_id, step.changed.values())
            else:
                uow.published.remove(project_id, step.removed)
                uow.published.put_many(project_id, step.changed.values())
            uow.published.drop_unused_texts()
            installed = replace(
                known,
                installed_commit=step.ref.commit_id,
                installed_seq=step.ref.seq,
                snapshot_at=known.snapshot_at or now,
                last_success_at=now,
                last_error=None,
            )
            uow.projects.put(installed)
            uow.touch(project_id)
        return replace(installed, head_commit=project.head_commit, head_seq=project.head_seq)


def _snapshot_step(client: OrgClient, project: ProjectRow) -> _Step:
    header, resources = client.snapshot(project.project_id)
    return _Step(header.ref, {each.resource_id: each for each in resources}, set(), complete=True)


def _verified(project: ProjectRow, commits: Iterable[CommitRecord]) -> _Step | None:
    """Return what the commits come to after checking each step of the chain; None for none."""
    head, seq = project.installed_commit, project.installed_seq
    changed: dict[str, PublishedResource] = {}
    removed: set[str] = set()
    for commit in commits:
        verify_step(
            owner=project.project_id,
            seq=commit.seq,
            parent=commit.parent,
            claimed_id=commit.commit_id,
            changes=[_hashed(change) for change in commit.changes],
            head_id=head,
            head_seq=seq,
            bodies={each.resource_id: each.body for each in commit.changes if each.body is not None},
        )
        head, seq = commit.commit_id, commit.seq
        for change in commit.changes:
            if change.removed:
                changed.pop(change.resource_id, None)
                removed.add(change.resource_id)
            else:
                removed.discard(change.resource_id)
                changed[change.resource_id] = _resource(change)
    if seq == project.installed_seq:
        return None
    return _Step(Ref(owner=project.project_id, commit_id=head, seq=seq), changed, removed)


def _hashed(change: CommitChange) -> Change:
    return Change(
        resource_id=change.resource_id,
        scope=change.scope,
        path=change.path,
        description=change.description,
        content_hash=change.content_hash,
        org_source=change.org_source,
        removed=change.removed,
    )


def _resource(change: CommitChange) -> PublishedResource:
    return PublishedResource(
        resource_id=change.resource_id,
        scope=change.scope,
        path=change.path,
        description=change.description,
        body=change.body or "",
        content_hash=change.content_hash,
        org_source=change.org_source,
    )


def _unconfirmed(project: ProjectRow) -> InterleafError:
    return InterleafError(
        ErrorCode.SYNC_INCOMPLETE,
        f"Most of {project.name} would be removed, and a second read said something else; "
        "nothing was applied. Interleaf asks again by itself.",
        details={"project_id": project.project_id},
    )

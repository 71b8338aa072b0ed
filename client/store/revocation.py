"""Forgetting what may not be read any more: one rule for a lost Project and a changed account."""

from __future__ import annotations

from dataclasses import replace

from client.store.projects import ProjectRow
from client.store.unit_of_work import UnitOfWork


def forget_project(uow: UnitOfWork, project: ProjectRow) -> None:
    """Delete all published text of a Project and what tells of it; its Drafts stay.

    Texts that no other Project shows are dropped too, so this is for a handful of Projects at a time.
    """
    project_id = project.project_id
    uow.published.delete_project(project_id)
    uow.published.drop_unused_texts()
    uow.activation_states.delete_project(project_id)
    uow.runs.delete_project(project_id)
    uow.cases.delete_project(project_id)
    uow.corpora.collect()
    uow.projects.put(
        replace(
            project,
            access=False,
            role=None,
            installed_commit=None,
            installed_seq=0,
            head_commit=None,
            head_seq=0,
            snapshot_at=None,
            last_error=None,
        )
    )
    uow.touch(project_id)

"""Evaluation cases as people read them, and as they are exported."""

from __future__ import annotations

from collections.abc import Mapping

from client.store.evaluation_cases import CaseRow, CaseVersion
from client.store.unit_of_work import UnitOfWork
from shared_schema.evaluation_contract import (
    CaseDetail,
    CaseItem,
    CaseVersionItem,
    EvidenceItem,
    ForbiddenItem,
)


def item_of(uow: UnitOfWork, row: CaseRow) -> CaseItem:
    """Return a case in a list."""
    newest = row.newest
    project, corpus = uow.projects.get(row.project_id), uow.corpora.get(newest.memory_hash)
    return CaseItem(
        case_id=row.case_id,
        project_id=row.project_id,
        project_name=project.name if project else row.project_id,
        query=row.query,
        created_at=row.created_at,
        version=newest.version,
        changed_at=newest.created_at,
        run_id=newest.run_id,
        corpus=newest.memory_hash,
        documents=corpus.documents if corpus else 0,
        kind=newest.judgment.kind.value,
        evidence=len(newest.judgment.evidence),
        forbidden=len(newest.judgment.forbidden),
    )


def detail_of(uow: UnitOfWork, row: CaseRow) -> CaseDetail:
    """Return a case with every version, the newest first."""
    versions = uow.cases.versions(row.case_id)
    return CaseDetail(
        case=item_of(uow, row), versions=[_version(uow, version) for version in reversed(versions)]
    )


def _version(uow: UnitOfWork, version: CaseVersion) -> CaseVersionItem:
    judgment = version.judgment
    paths = _paths(uow, version)
    return CaseVersionItem(
        version=version.version,
        created_at=version.created_at,
        run_id=version.run_id,
        corpus=version.memory_hash,
        kind=judgment.kind.value,
        evidence=[
            EvidenceItem(
                resource_id=each.resource_id,
                path=paths.get(each.resource_id),
                unit_key=each.unit_key,
                grade=each.grade,
            )
            for each in judgment.evidence
        ],
        forbidden=[ForbiddenItem(resource_id=each, path=paths.get(each)) for each in judgment.forbidden],
        note=version.note,
    )


def _paths(uow: UnitOfWork, version: CaseVersion) -> Mapping[str, str]:
    stored = uow.corpora.named(version.memory_hash, version.judgment.resources)
    return {each.document.resource_id: each.document.path for each in stored}

"""Evaluation cases for outside of the store: in pieces from the daemon, then as one document or a set.

::

    {"format": "interleaf-evaluation", "version": 1, "release", "exported_at", "project": {…},
     "cases":     [{"case": {…}, "versions": [{…}, …]}, …]      the newest version first
     "corpora":   [{"memory_hash", "commit_id", "created_at", "documents": [digest, …]}, …]
     "documents": {digest: {"resource_id", "path", …, "content_hash", "body"}, …}
     "report":    {…} or null}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from client.services.bind_directories import find_project
from client.services.evaluation.cases_views import detail_of
from client.services.project_memory import readable_project
from client.store.evaluation_corpora import StoredDocument
from client.store.unit_of_work import Store
from shared_schema.evaluation_contract import (
    CaseVersionItem,
    EvaluationExport,
    ExportCall,
    ExportedCorpus,
    ExportedDocument,
    ExportedPage,
    ExportPageCall,
)
from shared_schema.limits import MIB
from shared_schema.release import RELEASE
from shared_schema.tool_contract import OpenDraft

FORMAT: Final = "interleaf-evaluation"
VERSION: Final = 1
_PAGE_CHARACTERS: Final = 2 * MIB


class ExportCases:
    """Gives everything of a Project's cases, in pieces of bounded size."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def cases(self, call: ExportCall) -> EvaluationExport:
        """Return all cases with their versions, and the corpora that those name.

        Raises:
            InterleafError: as `find_project` and `readable_project`.
        """
        with self._store.read() as uow:
            project = readable_project(uow, find_project(uow, call.project).project_id)
            return EvaluationExport(
                project_id=project.project_id,
                project_name=project.name,
                cases=[detail_of(uow, row) for row in uow.cases.list(project.project_id)],
                corpora=[
                    ExportedCorpus(
                        memory_hash=row.memory_hash,
                        commit_id=row.commit_id,
                        created_at=row.created_at,
                        documents=uow.corpora.digests(row.memory_hash),
                    )
                    for row in uow.corpora.of_project(project.project_id)
                ],
            )

    def page(self, call: ExportPageCall) -> ExportedPage:
        """Return the documents of a Project's corpora behind a digest; raises as `cases` does."""
        with self._store.read() as uow:
            project = readable_project(uow, find_project(uow, call.project).project_id)
            found = uow.corpora.page(project.project_id, call.after, _PAGE_CHARACTERS)
        return ExportedPage(documents=[_exported(each) for each in found])


def document_of(
    exported: EvaluationExport,
    documents: Mapping[str, ExportedDocument],
    report: Mapping[str, Any] | None,
    now: int,
) -> dict[str, Any]:
    """Return the whole export as one JSON-able value; ``documents`` by digest, ``now`` in epoch ms."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "release": RELEASE,
        "exported_at": now,
        "project": {"project_id": exported.project_id, "name": exported.project_name},
        "cases": [case.model_dump(mode="json") for case in exported.cases],
        "corpora": [corpus.model_dump(mode="json") for corpus in exported.corpora],
        "documents": {
            digest: document.model_dump(mode="json", exclude={"digest"})
            for digest, document in documents.items()
        },
        "report": None if report is None else dict(report),
    }


def sets_of(
    exported: EvaluationExport, documents: Mapping[str, ExportedDocument]
) -> dict[str, dict[str, list[Any]]]:
    """Return the judged cases as evaluation sets, one for each corpus, by memory hash.

    A set is ``corpus`` and ``queries`` (rows for JSON lines) and ``judgments`` (query, document, grade).
    It knows documents only: a unit's grade becomes its document's, the best where there are several. A
    forbidden document gets -1. Where nothing matches, the first document says so with grade 0. A set
    has no descriptions.
    """
    by_hash = {corpus.memory_hash: corpus for corpus in exported.corpora}
    sets: dict[str, dict[str, list[Any]]] = {}
    for case in exported.cases:
        newest = case.versions[0]
        held = [documents[digest] for digest in by_hash[newest.corpus].documents]
        rows = _judgments(newest, [each.resource_id for each in held])
        if not rows:
            continue
        found = sets.setdefault(
            newest.corpus,
            {"corpus": [_corpus_row(each) for each in held], "queries": [], "judgments": []},
        )
        found["queries"].append({"id": case.case.case_id, "text": case.case.query})
        found["judgments"] += [(case.case.case_id, document, grade) for document, grade in rows.items()]
    return sets


def _judgments(version: CaseVersionItem, held: Sequence[str]) -> dict[str, int]:
    grades: dict[str, int] = {}
    for evidence in version.evidence:
        grades[evidence.resource_id] = max(evidence.grade, grades.get(evidence.resource_id, 0))
    grades |= {each.resource_id: -1 for each in version.forbidden if each.resource_id in held}
    if version.kind == "none_matched" and not grades:
        grades = dict.fromkeys(sorted(held)[:1], 0)
    return grades


def _corpus_row(document: ExportedDocument) -> dict[str, str]:
    return {
        "id": document.resource_id,
        "path": document.path,
        "title": document.title,
        "text": document.body,
    }


def _exported(stored: StoredDocument) -> ExportedDocument:
    document, draft = stored.document, stored.document.draft
    return ExportedDocument(
        digest=stored.digest,
        resource_id=document.resource_id,
        scope=document.scope,
        path=document.path,
        title=document.title,
        description=document.description,
        content_hash=document.content_hash,
        provenance=document.provenance,
        org_source=document.org_source,
        draft=OpenDraft(
            draft_id=draft.draft_id, freshness=draft.freshness, reconciliation=draft.reconciliation
        )
        if draft
        else None,
        body=stored.body,
    )

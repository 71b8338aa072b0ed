"""Evaluation cases in the local protocol: made from activations, judged by people, replayed here.

They never leave the machine by themselves; ``export_evaluation`` gives them to this user's own
command line.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from shared_schema import limits
from shared_schema.memory import Contract, OrgSource, Provenance, Scope
from shared_schema.tool_contract import Identifier, OpenDraft, Text

NOTE_CHARACTERS = 2_000
JUDGED_AT_ONCE = 200
"""Targets in one change of a judgment."""

Note = Annotated[Text, Field(max_length=NOTE_CHARACTERS)]
Target = Annotated[Text, Field(min_length=1, max_length=4 * limits.IDENTIFIER_CHARACTERS)]
"""A resource id or exact path of the case's corpus; with ``#`` and a heading, or the rest of a unit key,
one of its units; or a whole unit key."""
ExpectedVersion = Annotated[int, Field(ge=1)]


class CaseCreateCall(Contract):
    """``create_evaluation_case``: from a run, which is pinned."""

    run_id: Identifier
    note: Note = ""


class CaseListCall(Contract):
    """``list_evaluation_cases``, oldest first: of one Project or of all."""

    project: str | None = None


class CaseCall(Contract):
    """``show_evaluation_case``."""

    case_id: Identifier


class CaseDeleteCall(Contract):
    """``delete_evaluation_case``, with all its versions."""

    case_id: Identifier
    expect_version: ExpectedVersion | None = None


class GradedTarget(Contract):
    """A target and how well it answers: 1 to 3; 0 takes back what was said of it."""

    target: Target
    grade: int = Field(ge=0, le=3)


class CaseJudgeCall(Contract):
    """``judge_evaluation_case``: what is newly said; the rest stays, or is forgotten with ``replace``.

    With ``expect_version`` a case that has another version by now is left alone: ``version_conflict``.
    """

    case_id: Identifier
    evidence: list[GradedTarget] = Field(default_factory=list, max_length=JUDGED_AT_ONCE)
    forbid: list[Target] = Field(default_factory=list, max_length=JUDGED_AT_ONCE)
    none_matched: bool = False
    replace: bool = False
    note: Note | None = None
    """Replaces the note; none leaves it."""
    expect_version: ExpectedVersion | None = None


class CaseFreezeCall(Contract):
    """``freeze_evaluation_case``: onto the corpus that a newer run of the same query searched."""

    case_id: Identifier
    run_id: Identifier
    expect_version: ExpectedVersion | None = None


class EvidenceItem(Contract):
    """A resource or one of its units, and its grade from 1 to 3."""

    resource_id: str
    path: str | None
    unit_key: str | None
    grade: int


class ForbiddenItem(Contract):
    """A resource that must not be returned. ``path`` is none where the corpus does not hold it."""

    resource_id: str
    path: str | None


class CaseVersionItem(Contract):
    """One version of a case. ``corpus`` is the memory hash of what is frozen for it."""

    version: int
    created_at: int
    run_id: str
    corpus: str
    kind: Literal["unjudged", "graded", "none_matched", "forbidden_only"]
    evidence: list[EvidenceItem]
    forbidden: list[ForbiddenItem]
    note: str


class CaseItem(Contract):
    """One case in a list, in its newest version."""

    case_id: str
    project_id: str
    project_name: str
    query: str
    created_at: int
    version: int
    changed_at: int
    run_id: str
    corpus: str
    documents: int
    """Documents of its corpus."""
    kind: Literal["unjudged", "graded", "none_matched", "forbidden_only"]
    evidence: int
    forbidden: int


class CaseList(Contract):
    """``list_evaluation_cases``."""

    cases: list[CaseItem]


class CaseDetail(Contract):
    """One case with every version, the newest first."""

    case: CaseItem
    versions: list[CaseVersionItem]


class ReportCall(Contract):
    """``start_evaluation_report``: replays the cases of a Project in the background."""

    project: str


class ReportStateCall(Contract):
    """``evaluation_report``: answers when the report is done, else after a moment.

    A report that nobody asks for any more is given up.
    """

    report_id: Identifier


class ReportState(Contract):
    """How far a report is; ``done`` and ``total`` count passages, then cases. Kept until newer ones come."""

    report_id: str
    stage: Literal["waiting", "indexing", "searching", "finished"]
    done: int = 0
    total: int = 0
    report: dict[str, Any] | None = None


class ExportCall(Contract):
    """``export_evaluation``."""

    project: str


class ExportedCorpus(Contract):
    """A frozen corpus: digests of its documents."""

    memory_hash: str
    commit_id: str | None
    created_at: int
    documents: list[str]


class EvaluationExport(Contract):
    """``export_evaluation``: cases with all versions, and their corpora; documents come in pages."""

    project_id: str
    project_name: str
    cases: list[CaseDetail]
    corpora: list[ExportedCorpus]


class ExportPageCall(Contract):
    """``exported_documents``: the page behind the document with this digest."""

    project: str
    after: str = Field(default="", max_length=100)


class ExportedDocument(Contract):
    """One document as it was seen, with its text."""

    digest: str
    resource_id: str
    scope: Scope
    path: str
    title: str
    description: str
    content_hash: str
    provenance: Provenance
    org_source: OrgSource | None
    draft: OpenDraft | None
    body: str


class ExportedPage(Contract):
    """``exported_documents``: empty behind the last one."""

    documents: list[ExportedDocument]

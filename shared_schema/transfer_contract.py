"""Import and export in the local protocol: documents in batches, and memory page by page."""

from __future__ import annotations

from pydantic import Field

from shared_schema import limits
from shared_schema.memory import Contract, ResourceId, Scope
from shared_schema.transfer.documents import Counts, Outcome, ReportItem
from shared_schema.transfer.manifest import ExportedResource


class ImportDocument(Contract):
    """One document of a source, with its complete text."""

    path: str = Field(max_length=limits.IDENTIFIER_CHARACTERS)
    body: str
    description: str | None = None
    """None: that of an existing document stays."""
    resource_id: ResourceId | None = None
    """The document that it was exported from; where the Project shows that one, it is meant."""


class ImportCall(Contract):
    """``import_drafts``: a batch becomes Drafts in one transaction; what is there already does not.

    With ``dry_run`` the answer is the same, and nothing is changed.
    """

    project: str
    scope: Scope = Field(strict=False)
    documents: list[ImportDocument] = Field(min_length=1, max_length=limits.IMPORT_DOCUMENTS)
    dry_run: bool = False


class ImportedDocument(Contract):
    """What became of one document of a batch."""

    outcome: Outcome
    path: str
    code: str | None = None
    reason: str | None = None
    resource_id: str | None = None
    draft_id: str | None = None
    """The Draft that holds the text, where it is not published."""
    scope: Scope | None = None
    submittable: bool = False
    """Whether that Draft is open and changes something."""


class ImportAnswer(Contract):
    """``import_drafts``, in the order of the call."""

    project_id: str
    documents: list[ImportedDocument]


class ExportCall(Contract):
    """``export_memory``: the page behind the resource ``after``.

    ``state`` is that of the first page: once the Project shows something else, the answer is
    ``version_conflict``, and an export begins anew.
    """

    project: str
    drafts: bool = False
    """Lay this machine's Drafts over what is published."""
    after: str = Field(default="", max_length=limits.IDENTIFIER_CHARACTERS)
    state: str | None = None


class ExportedText(Contract):
    """One document and its text."""

    resource: ExportedResource
    body: str


class ExportedMemory(Contract):
    """``export_memory``: a page, by resource id."""

    project_id: str
    name: str
    commit_id: str | None
    state: str
    documents: list[ExportedText]
    total: int
    complete: bool
    """Whether this is the last page."""


class OpenedReview(Contract):
    """A Review that an import opened."""

    review_id: str
    title: str
    draft_ids: list[str]
    merged: bool = False


class ImportReport(Contract):
    """What ``import --json`` prints."""

    project_id: str
    dry_run: bool
    counts: Counts
    other_files: int
    """Files of the folder that are no Markdown; they were left alone."""
    items: list[ReportItem]
    reviews: list[OpenedReview]


class ExportReport(Contract):
    """What ``export --json`` prints of one folder."""

    folder: str
    project_id: str | None
    commit_id: str | None
    documents: int
    left_out: list[ReportItem]

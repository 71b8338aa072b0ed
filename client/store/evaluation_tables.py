"""The tables of evaluation cases and their frozen corpora.

::

    evaluation_case ─ evaluation_version ─▶ evaluation_corpus ─ evaluation_member ─▶ evaluation_document
                                                                                       └▶ evaluation_body

Documents and bodies are stored once, whatever corpora they belong to, and go with the last of them.
"""

from typing import Any, ClassVar

from sqlalchemy import Index, MetaData, Text, UniqueConstraint
from sqlmodel import Field

from client.store.tables import Table

metadata: MetaData = Table.metadata
"""The client's, with these tables in it."""


class EvaluationCaseTable(Table, table=True):
    """One question with its judgment; ``version`` is the newest one."""

    __tablename__ = "evaluation_case"
    __table_args__: ClassVar[Any] = (Index("ix_evaluation_case_project_id", "project_id"),)
    case_id: str = Field(primary_key=True)
    project_id: str
    query: str = Field(sa_type=Text)
    version: int
    created_at: int


class EvaluationCorpusTable(Table, table=True):
    """What one Effective Memory showed; ``digest`` covers its documents."""

    __tablename__ = "evaluation_corpus"
    __table_args__: ClassVar[Any] = (
        UniqueConstraint("memory_hash"),
        Index("ix_evaluation_corpus_project_id", "project_id"),
    )
    seq: int | None = Field(default=None, primary_key=True)
    memory_hash: str
    project_id: str
    commit_id: str | None = None
    documents: int
    digest: str
    created_at: int


class EvaluationVersionTable(Table, table=True):
    """One state of a case, never changed; ``judgment`` is JSON.

    ``run_pinned`` tells that the run was pinned for this version and by nobody before.
    """

    __tablename__ = "evaluation_version"
    __table_args__: ClassVar[Any] = (
        Index("ix_evaluation_version_corpus", "corpus"),
        Index("ix_evaluation_version_run_id", "run_id"),
    )
    case_id: str = Field(primary_key=True, foreign_key="evaluation_case.case_id")
    version: int = Field(primary_key=True)
    corpus: int = Field(foreign_key="evaluation_corpus.seq")
    run_id: str
    run_pinned: bool
    judgment: str = Field(sa_type=Text)
    note: str = Field(sa_type=Text)
    created_at: int


class EvaluationBodyTable(Table, table=True):
    """One text, once. Apart from ``blob``: what is frozen is no cache of the server's state."""

    __tablename__ = "evaluation_body"
    content_hash: str = Field(primary_key=True)
    body: str = Field(sa_type=Text)


class EvaluationDocumentTable(Table, table=True):
    """One document as it was seen, once."""

    __tablename__ = "evaluation_document"
    __table_args__: ClassVar[Any] = (
        UniqueConstraint("digest"),
        Index("ix_evaluation_document_content_hash", "content_hash"),
    )
    seq: int | None = Field(default=None, primary_key=True)
    digest: str
    resource_id: str
    scope: str
    path: str
    title: str
    description: str = Field(sa_type=Text)
    content_hash: str = Field(foreign_key="evaluation_body.content_hash")
    provenance: str
    source_resource_id: str | None = None
    source_commit_id: str | None = None
    draft_id: str | None = None
    draft_freshness: str | None = None
    draft_reconciliation: str | None = None


class EvaluationMemberTable(Table, table=True):
    """Which documents a corpus holds; small rows, because there is one for each of them."""

    __tablename__ = "evaluation_member"
    __table_args__: ClassVar[Any] = (
        Index("ix_evaluation_member_document", "document"),
        {"sqlite_with_rowid": False},
    )
    corpus: int = Field(primary_key=True, foreign_key="evaluation_corpus.seq")
    document: int = Field(primary_key=True, foreign_key="evaluation_document.seq")

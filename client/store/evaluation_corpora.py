"""Frozen corpora: documents and texts stored once, and which corpus holds which of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection, delete, exists, insert, literal, select

from client.domain.case_corpus import FrozenDocument, corpus_digest
from client.domain.effective_memory import DraftRef, EffectiveMemory, EffectiveResource
from client.store.evaluation_tables import metadata
from client.store.published import source_columns, source_of
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.memory import Provenance, Scope

_CORPUS = metadata.tables["evaluation_corpus"]
_MEMBER = metadata.tables["evaluation_member"]
_DOCUMENT = metadata.tables["evaluation_document"]
_BODY = metadata.tables["evaluation_body"]
_VERSION = metadata.tables["evaluation_version"]

_BATCH: Final = 500
"""Rows of one statement; SQLite bounds the number of its parameters."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CorpusRow:
    """One frozen corpus, known by the hash of the Effective Memory that it was."""

    memory_hash: str
    project_id: str
    commit_id: str | None
    documents: int
    digest: str
    """`corpus_digest` of its documents."""
    created_at: int


class StoredDocument(NamedTuple):
    """A document with its text, and the digest that it is stored under."""

    digest: str
    document: FrozenDocument
    body: str


class CorpusRepository:
    """Frozen corpora. What no case needs any more goes with `collect`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, memory: EffectiveMemory, now: int) -> None:
        """Freeze what a Project shows; only documents and texts that are new are written."""
        documents = [FrozenDocument.of(resource) for resource in memory.resources]
        digests = [document.digest for document in documents]
        corpus = self._connection.execute(
            insert(_CORPUS)
            .values(
                memory_hash=memory.hash,
                project_id=memory.project_id,
                commit_id=memory.commit_id,
                documents=len(documents),
                digest=corpus_digest(digests),
                created_at=now,
            )
            .returning(_CORPUS.c.seq)
        ).scalar_one()
        known = self._known(_DOCUMENT.c.digest, digests)
        new = {each.digest: each for each in documents if each.digest not in known}
        self._add_bodies(memory.by_id[each.resource_id] for each in new.values())
        for batch in _batches(new.values()):
            self._connection.execute(insert(_DOCUMENT), [_row(each) for each in batch])
        for some in _batches(digests):
            chosen = select(literal(corpus), _DOCUMENT.c.seq).where(_DOCUMENT.c.digest.in_(some))
            self._connection.execute(insert(_MEMBER).from_select(["corpus", "document"], chosen))

    def get(self, memory_hash: str) -> CorpusRow | None:
        """Return one corpus, or None."""
        row = self._connection.execute(select(_CORPUS).where(_CORPUS.c.memory_hash == memory_hash)).first()
        return None if row is None else _corpus(row)

    def of_project(self, project_id: str) -> tuple[CorpusRow, ...]:
        """Return the corpora of a Project, the oldest first."""
        statement = select(_CORPUS).where(_CORPUS.c.project_id == project_id).order_by(_CORPUS.c.seq)
        return tuple(_corpus(row) for row in self._connection.execute(statement))

    def digests(self, memory_hash: str) -> list[str]:
        """Return the digests of a corpus's documents, sorted."""
        statement = select(_DOCUMENT.c.digest).select_from(_MEMBERS)
        return sorted(
            self._connection.execute(statement.where(_CORPUS.c.memory_hash == memory_hash)).scalars()
        )

    def documents(self, memory_hash: str) -> list[StoredDocument]:
        """Return the documents of a corpus with their texts."""
        statement = _WITH_TEXT.where(_CORPUS.c.memory_hash == memory_hash)
        return [_stored(row) for row in self._connection.execute(statement)]

    def named(self, memory_hash: str, names: Collection[str]) -> list[StoredDocument]:
        """Return the documents of a corpus with any of these ids or exact paths."""
        found: list[StoredDocument] = []
        for some in _batches(sorted(names)):
            wanted = _DOCUMENT.c.resource_id.in_(some) | _DOCUMENT.c.path.in_(some)
            statement = _WITH_TEXT.where(_CORPUS.c.memory_hash == memory_hash, wanted)
            found += map(_stored, self._connection.execute(statement))
        return found

    def paths(self, memory_hash: str) -> dict[str, str]:
        """Return the paths of a corpus's documents by resource id."""
        statement = select(_DOCUMENT.c.resource_id, _DOCUMENT.c.path).select_from(_MEMBERS)
        rows = self._connection.execute(statement.where(_CORPUS.c.memory_hash == memory_hash))
        return {row.resource_id: row.path for row in rows}

    def page(self, project_id: str, after: str, characters: int) -> list[StoredDocument]:
        """Return documents of a Project's corpora in the order of their digests, from behind ``after``,
        until their texts have so many characters; at least one where there is any."""
        members = (
            exists()
            .where(_MEMBER.c.document == _DOCUMENT.c.seq, _MEMBER.c.corpus == _CORPUS.c.seq)
            .where(_CORPUS.c.project_id == project_id)
        )
        statement = (
            select(_DOCUMENT, _BODY.c.body)
            .join(_BODY, _BODY.c.content_hash == _DOCUMENT.c.content_hash)
            .where(members, _DOCUMENT.c.digest > after)
            .order_by(_DOCUMENT.c.digest)
            .limit(_BATCH)
        )
        found: list[StoredDocument] = []
        for row in self._connection.execute(statement):
            found.append(_stored(row))
            characters -= len(row.body)
            if characters <= 0:
                break
        return found

    def collect(self) -> None:
        """Delete corpora that no version names, then documents of none, then texts of none."""
        named = exists().where(_VERSION.c.corpus == _CORPUS.c.seq)
        unused = select(_CORPUS.c.seq).where(~named)
        self._connection.execute(delete(_MEMBER).where(_MEMBER.c.corpus.in_(unused)))
        self._connection.execute(delete(_CORPUS).where(~named))
        member = exists().where(_MEMBER.c.document == _DOCUMENT.c.seq)
        self._connection.execute(delete(_DOCUMENT).where(~member))
        used = exists().where(_DOCUMENT.c.content_hash == _BODY.c.content_hash)
        self._connection.execute(delete(_BODY).where(~used))

    def _add_bodies(self, resources: Iterable[EffectiveResource]) -> None:
        for batch in _batches(resources):
            texts = {each.content_hash: each.body for each in batch}
            known = self._known(_BODY.c.content_hash, list(texts))
            rows = [{"content_hash": key, "body": body} for key, body in texts.items() if key not in known]
            if rows:
                self._connection.execute(insert(_BODY), rows)

    def _known(self, column: Any, values: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for some in _batches(values):
            found.update(self._connection.execute(select(column).where(column.in_(some))).scalars())
        return found


_MEMBERS: Final = _MEMBER.join(_CORPUS, _CORPUS.c.seq == _MEMBER.c.corpus).join(
    _DOCUMENT, _DOCUMENT.c.seq == _MEMBER.c.document
)
_WITH_TEXT: Final = select(_DOCUMENT, _BODY.c.body).select_from(
    _MEMBERS.join(_BODY, _BODY.c.content_hash == _DOCUMENT.c.content_hash)
)


def _corpus(row: Any) -> CorpusRow:
    return CorpusRow(
        row.memory_hash, row.project_id, row.commit_id, row.documents, row.digest, row.created_at
    )


def _row(document: FrozenDocument) -> dict[str, object]:
    draft = document.draft
    return {
        "digest": document.digest,
        "resource_id": document.resource_id,
        "scope": document.scope.value,
        "path": document.path,
        "title": document.title,
        "description": document.description,
        "content_hash": document.content_hash,
        "provenance": document.provenance.value,
        **source_columns(document.org_source),
        "draft_id": draft.draft_id if draft else None,
        "draft_freshness": draft.freshness.value if draft else None,
        "draft_reconciliation": draft.reconciliation.value if draft else None,
    }


def _stored(row: Any) -> StoredDocument:
    document = FrozenDocument(
        resource_id=row.resource_id,
        scope=Scope(row.scope),
        path=row.path,
        title=row.title,
        description=row.description,
        content_hash=row.content_hash,
        provenance=Provenance(row.provenance),
        org_source=source_of(row),
        draft=_draft(row),
    )
    return StoredDocument(row.digest, document, row.body)


def _draft(row: Any) -> DraftRef | None:
    if row.draft_id is None:
        return None
    return DraftRef(row.draft_id, Freshness(row.draft_freshness), Reconciliation(row.draft_reconciliation))


def _batches(items: Iterable[_T]) -> Iterator[Sequence[_T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch

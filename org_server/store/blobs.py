"""Texts by content hash, each stored once, whatever holds it."""

from collections.abc import Iterable

from sqlalchemy import func
from sqlmodel import col, insert, select

from org_server.store.batches import batches
from org_server.store.tables import BlobRow
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.rules.hashing import content_hash


def put_text(uow: UnitOfWork, body: str) -> str:
    """Store a text unless it is there and return its hash.

    Reading before writing is safe: writing transactions are serialised.
    """
    digest = content_hash(body)
    if (
        uow.session.exec(select(BlobRow.content_hash).where(col(BlobRow.content_hash) == digest)).first()
        is None
    ):
        uow.session.execute(insert(BlobRow).values(content_hash=digest, body=body))
    return digest


def read_texts(uow: UnitOfWork, hashes: Iterable[str | None]) -> dict[str, str]:
    """Return the texts of these hashes by hash; None among them is skipped."""
    texts: dict[str, str] = {}
    for batch in batches(sorted({digest for digest in hashes if digest is not None})):
        rows = uow.session.exec(
            select(BlobRow.content_hash, BlobRow.body).where(col(BlobRow.content_hash).in_(batch))
        )
        texts.update((digest, body) for digest, body in rows)
    return texts


def read_sizes(uow: UnitOfWork, hashes: Iterable[str | None]) -> dict[str, int]:
    """Return the lengths of these texts in characters by hash; None among them is skipped."""
    sizes: dict[str, int] = {}
    for batch in batches(sorted({digest for digest in hashes if digest is not None})):
        rows = uow.session.exec(
            select(BlobRow.content_hash, func.length(BlobRow.body)).where(
                col(BlobRow.content_hash).in_(batch)
            )
        )
        sizes.update((digest, size) for digest, size in rows)
    return sizes

"""Whether what is stored is what its hashes name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlmodel import col, func, select

from org_server.store.batches import BATCH
from org_server.store.commits import commits_after
from org_server.store.tables import BlobRow, CommitRow, FeedEventRow, ProjectRow, VersionRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from org_server.store.versions import as_change, changes_between
from shared_schema.errors import InterleafError
from shared_schema.memory import Contract
from shared_schema.rules.chain import verify_step
from shared_schema.rules.hashing import content_hash

_BODIES_AT_ONCE: Final = 50


class CheckReport(Contract):
    """What a check read and what it found wrong."""

    authorities: int
    commits: int
    texts: int
    problems: list[str]


def check_database(units: UnitOfWorkFactory) -> CheckReport:
    """Verify every chain, every text and the feed's counter, on one consistent state."""
    with units.read() as uow:
        owners = [uow.org.id, *uow.session.exec(select(ProjectRow.id).order_by(col(ProjectRow.id)))]
        problems: list[str] = []
        for owner in owners:
            problems += _check_chain(uow, owner)
        texts = 0
        for digest, body in _texts(uow):
            texts += 1
            if content_hash(body) != digest:
                problems.append(f"the text {digest} is another one than its hash names")
        last = uow.session.exec(select(func.max(FeedEventRow.seq))).one() or 0
        if last > uow.feed_head():
            problems.append(f"the feed's counter stands at {uow.feed_head()}, but event {last} exists")
        commits = uow.session.exec(select(func.count()).select_from(CommitRow)).one()
        return CheckReport(authorities=len(owners), commits=commits, texts=texts, problems=problems)


def _check_chain(uow: UnitOfWork, owner: str) -> list[str]:
    head_id: str | None = None
    head_seq = 0
    while commits := commits_after(uow, owner, head_seq, BATCH):
        changes: dict[int, list[VersionRow]] = {}
        for row in changes_between(uow, owner, head_seq, commits[-1].seq):
            changes.setdefault(row.from_seq, []).append(row)
        for commit in commits:
            try:
                verify_step(
                    owner=owner,
                    seq=commit.seq,
                    parent=commit.parent,
                    claimed_id=commit.commit_id,
                    changes=[as_change(row) for row in changes.get(commit.seq, [])],
                    head_id=head_id,
                    head_seq=head_seq,
                )
            except InterleafError as error:
                return [f"{owner}: commit {commit.seq} does not verify ({error.details['reason']})"]
            head_id, head_seq = commit.commit_id, commit.seq
    return [] if _ref(uow, owner) == (head_id, head_seq) else [f"{owner}: the ref is not the last commit"]


def _ref(uow: UnitOfWork, owner: str) -> tuple[str | None, int]:
    row = uow.org if owner == uow.org.id else uow.session.get_one(ProjectRow, owner)
    return row.head_commit, row.head_seq


def _texts(uow: UnitOfWork) -> Iterator[tuple[str, str]]:
    after = ""
    while True:
        rows = uow.session.exec(
            select(BlobRow.content_hash, BlobRow.body)
            .where(col(BlobRow.content_hash) > after)
            .order_by(col(BlobRow.content_hash))
            .limit(_BODIES_AT_ONCE)
        ).all()
        if not rows:
            return
        yield from rows
        after = rows[-1][0]

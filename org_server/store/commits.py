"""An authority's chain of commits and its ref."""

from collections.abc import Iterable

from sqlmodel import col, select, update

from org_server.domain.refs import RefValue, require_ref
from org_server.store.batches import batches
from org_server.store.tables import CommitRow, OrgRow, ProjectRow
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import Ref


def authority_row(uow: UnitOfWork, owner: str) -> OrgRow | ProjectRow:
    """Return the row that holds the ref of an authority; ``not_found`` for an unknown one."""
    if owner == uow.org.id:
        return uow.org
    project = uow.session.get(ProjectRow, owner)
    if project is None:
        raise InterleafError(ErrorCode.NOT_FOUND)
    return project


def read_ref(uow: UnitOfWork, owner: str) -> RefValue:
    """Return where the authority's ref stands in this transaction."""
    row = authority_row(uow, owner)
    return RefValue(row.head_commit, row.head_seq)


def ref_answer(uow: UnitOfWork, owner: str) -> Ref:
    """Return the authority's ref as a contract value."""
    value = read_ref(uow, owner)
    return Ref(owner=owner, commit_id=value.commit_id, seq=value.seq)


def move_ref(uow: UnitOfWork, owner: str, expected: RefValue, new: RefValue) -> None:
    """Move the ref from ``expected`` to ``new``; ``precondition_failed`` when it stands elsewhere."""
    row = authority_row(uow, owner)
    table = type(row)
    moved = uow.session.execute(
        update(table)
        .where(
            col(table.id) == owner,
            col(table.head_commit).is_not_distinct_from(expected.commit_id),
            col(table.head_seq) == expected.seq,
        )
        .values(head_commit=new.commit_id, head_seq=new.seq)
        .execution_options(synchronize_session=False)
    )
    uow.session.refresh(row)
    if moved.rowcount != 1:  # type: ignore[attr-defined]  # an UPDATE's result has it; Session.execute promises less
        require_ref(expected.commit_id, row.head_commit)


def seq_of(uow: UnitOfWork, owner: str, commit_id: str | None) -> int:
    """Return the number of a commit of this authority, 0 for None; ``commit_unknown`` for another."""
    if commit_id is None:
        return 0
    seq = uow.session.exec(
        select(CommitRow.seq).where(col(CommitRow.owner) == owner, col(CommitRow.commit_id) == commit_id)
    ).first()
    if seq is None:
        raise InterleafError(
            ErrorCode.COMMIT_UNKNOWN,
            "This commit is not in the history. Take a snapshot.",
            details={"owner": owner, "commit_id": commit_id},
        )
    return seq


def commit_ids(uow: UnitOfWork, owner: str, seqs: Iterable[int]) -> dict[int, str]:
    """Return the commit ids of these numbers."""
    found: dict[int, str] = {}
    for batch in batches(sorted(set(seqs))):
        rows = uow.session.exec(
            select(CommitRow.seq, CommitRow.commit_id).where(
                col(CommitRow.owner) == owner, col(CommitRow.seq).in_(batch)
            )
        )
        found.update((seq, commit_id) for seq, commit_id in rows)
    return found


def commits_after(uow: UnitOfWork, owner: str, seq: int, limit: int) -> list[CommitRow]:
    """Return the next commits after a number, oldest first."""
    return list(
        uow.session.exec(
            select(CommitRow)
            .where(col(CommitRow.owner) == owner, col(CommitRow.seq) > seq)
            .order_by(col(CommitRow.seq))
            .limit(limit)
        )
    )

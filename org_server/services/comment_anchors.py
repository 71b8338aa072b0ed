"""Comments as readers see them: what was commented, and where that is in the Review's present content."""

from collections.abc import Mapping, Sequence

from org_server.domain.states import HashedState
from org_server.store.blobs import read_texts
from org_server.store.drafts import state_of_draft
from org_server.store.reviews import drafts_of_review, emails
from org_server.store.tables import ReviewCommentRow, ReviewRow
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.org_contract import Comment
from shared_schema.reviews import FINAL_STATUSES, ReviewStatus
from shared_schema.rules.line_anchors import line_at, present_line


def results_of(uow: UnitOfWork, review: ReviewRow) -> dict[str, HashedState]:
    """Return what the Review's Drafts come to, by Draft id; of a final Review what was judged."""
    if ReviewStatus(review.status) in FINAL_STATUSES and review.frozen is not None:
        entries = review.frozen["entries"]
        return {entry["draft_id"]: HashedState.from_json(entry["after"]) for entry in entries}
    return {draft.id: state_of_draft(draft) for draft in drafts_of_review(uow, review.id)}


def answer_comments(uow: UnitOfWork, review: ReviewRow, rows: Sequence[ReviewCommentRow]) -> list[Comment]:
    """Return these comments of the Review as the contract shows them, in the same order."""
    results = results_of(uow, review)
    addresses = emails(uow, (each for row in rows for each in (row.author_id, row.resolved_by) if each))
    hashes = {row.anchor_hash for row in rows}
    hashes |= {results[row.draft_id].content_hash for row in rows if row.draft_id in results}
    texts = read_texts(uow, hashes)
    return [_answer(row, results.get(row.draft_id or ""), texts, addresses) for row in rows]


def _answer(
    row: ReviewCommentRow,
    result: HashedState | None,
    texts: Mapping[str, str],
    addresses: Mapping[str, str],
) -> Comment:
    then = None if row.anchor_hash is None else texts[row.anchor_hash]
    there = result is not None and result.exists
    line = _present_line(row, result, texts) if there and row.line is not None else None
    outdated = row.draft_id is not None and (result is None or (row.line is not None and line is None))
    return Comment(
        comment_id=row.id,
        author_id=row.author_id,
        author_email=addresses[row.author_id],
        body=row.body,
        draft_id=row.draft_id,
        path=row.path,
        line=row.line,
        quote=None if then is None or row.line is None else line_at(then, row.line),
        present_path=result.path if result is not None and result.exists else None,
        present_line=line,
        outdated=outdated,
        resolved=row.resolved,
        resolved_by=row.resolved_by,
        resolved_by_email=None if row.resolved_by is None else addresses[row.resolved_by],
        resolved_at=row.resolved_at,
        created_at=row.created_at,
    )


def _present_line(row: ReviewCommentRow, result: HashedState | None, texts: Mapping[str, str]) -> int | None:
    """Return where the line is; None too for one whose text was not kept when it was commented."""
    if row.line is None or row.anchor_hash is None or result is None or result.content_hash is None:
        return None
    if row.anchor_hash == result.content_hash:
        return row.line
    return present_line(texts[row.anchor_hash], texts[result.content_hash], row.line)

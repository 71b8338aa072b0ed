"""The server's tables; nothing outside ``store`` and the services sees a row of them.

Times are epoch milliseconds. ``owner`` is the id of an authority: the Organization's or a
Project's. An authority's published state is kept as version ranges: a row of ``version`` holds
from commit ``from_seq`` up to, but not including, ``to_seq`` (null: still). A commit therefore
costs rows in proportion to what it changes, and any earlier state can be read.

Rows are not validated (SQLModel does not, for tables); the CHECK constraints are the last guard.
"""

from org_server.store.tables.authority import BlobRow, CommitRow, SelectionRow, VersionRow
from org_server.store.tables.base import Row, metadata
from org_server.store.tables.drafts import DraftOperationRow, DraftRow
from org_server.store.tables.events import (
    AuditEventRow,
    FeedCounterRow,
    FeedEventRow,
    InboxItemRow,
    RepeatedRequestRow,
)
from org_server.store.tables.identity import MemberRow, OrgRow, ProjectRow, TokenRow, UserRow
from org_server.store.tables.reviews import ApprovalRow, ReviewCommentRow, ReviewDraftRow, ReviewRow

__all__ = [
    "ApprovalRow",
    "AuditEventRow",
    "BlobRow",
    "CommitRow",
    "DraftOperationRow",
    "DraftRow",
    "FeedCounterRow",
    "FeedEventRow",
    "InboxItemRow",
    "MemberRow",
    "OrgRow",
    "ProjectRow",
    "RepeatedRequestRow",
    "ReviewCommentRow",
    "ReviewDraftRow",
    "ReviewRow",
    "Row",
    "SelectionRow",
    "TokenRow",
    "UserRow",
    "VersionRow",
    "metadata",
]

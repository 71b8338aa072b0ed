"""An authority's commits since one that the caller has, with their changes and texts."""

from collections import defaultdict
from typing import Final

from pydantic import Field

from org_server.domain.permissions import Action, Actor
from org_server.services import access
from org_server.services.published import as_record
from org_server.store.blobs import read_sizes, read_texts
from org_server.store.commits import commits_after, seq_of
from org_server.store.tables import CommitRow, VersionRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from org_server.store.versions import changes_between
from shared_schema import limits
from shared_schema.memory import Contract
from shared_schema.org_contract import EMPTY_REF, CommitPage

PAGE_CHARACTERS: Final = 4 * limits.MIB
"""Text in one answer, unless its first commit alone has more: a commit is never cut."""


class CommitQuery(Contract):
    """The query of GET /projects/{id}/commits and GET /org/commits."""

    after: str | None = Field(default=None, max_length=limits.IDENTIFIER_CHARACTERS)
    """The newest commit that the caller has; ``none`` or nothing: from the first on."""
    limit: int = Field(default=limits.PAGE_DEFAULT, ge=1, le=limits.PAGE_MAX)


def read_project_commits(
    units: UnitOfWorkFactory, actor: Actor, project_id: str, query: CommitQuery
) -> CommitPage:
    """GET /projects/{id}/commits; ``commit_unknown`` where ``after`` is not in the chain."""
    with units.read() as uow:
        access.require_project(uow, actor, Action.PROJECT_READ, project_id)
        return _page(uow, project_id, query)


def read_org_commits(units: UnitOfWorkFactory, actor: Actor, query: CommitQuery) -> CommitPage:
    """GET /org/commits; ``commit_unknown`` where ``after`` is not in the chain."""
    with units.read() as uow:
        access.require_org(uow, actor, Action.ORG_MEMORY_READ)
        return _page(uow, uow.org.id, query)


def _page(uow: UnitOfWork, owner: str, query: CommitQuery) -> CommitPage:
    after = seq_of(uow, owner, None if query.after in (None, "", EMPTY_REF) else query.after)
    commits = commits_after(uow, owner, after, query.limit + 1)
    found, more = commits[: query.limit], len(commits) > query.limit
    by_commit: dict[int, list[VersionRow]] = defaultdict(list)
    if found:
        for row in changes_between(uow, owner, after, found[-1].seq):
            by_commit[row.from_seq].append(row)
    fitting = _fitting(uow, found, by_commit)
    rows = [row for commit in fitting for row in by_commit[commit.seq] if not row.removed]
    texts = read_texts(uow, (row.content_hash for row in rows))
    return CommitPage(
        commits=[as_record(commit, by_commit[commit.seq], texts) for commit in fitting],
        has_more=more or len(fitting) < len(found),
    )


def _fitting(
    uow: UnitOfWork, commits: list[CommitRow], by_commit: dict[int, list[VersionRow]]
) -> list[CommitRow]:
    """Return the leading commits whose texts fit into one answer, at least one."""
    sizes = read_sizes(uow, (row.content_hash for rows in by_commit.values() for row in rows))
    total = 0
    for position, commit in enumerate(commits):
        total += sum(sizes.get(row.content_hash or "", 0) for row in by_commit[commit.seq] if not row.removed)
        if position and total > PAGE_CHARACTERS:
            return commits[:position]
    return commits

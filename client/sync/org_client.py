"""Every route of the Organization server's API as a typed method.

Lists come as iterators that walk all pages. Errors: see `org_http`. Reads, uploads and whatever takes
an ``Idempotency-Key`` are tried again in a short burst; other writes are sent once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError

from client.sync.org_http import OrgHttp, Query
from shared_schema import limits
from shared_schema import org_contract as api
from shared_schema.drafts import DraftStatus
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import PublishedResource, Scope
from shared_schema.reviews import ReviewStatus
from shared_schema.rules.hashing import content_hash

_Item = TypeVar("_Item")
_Record = TypeVar("_Record", bound=BaseModel)
_never: Callable[[], bool] = lambda: False  # noqa: E731 - a value, not a function of the module


def _at(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _version(number: int) -> str:
    return f'"{number}"'


class OrgClient(OrgHttp):
    """The server, as one user's token sees it."""

    # --- identity and administration ---

    def me(self) -> api.Me:
        """Who the token belongs to, and what it may do."""
        return self.get("/me", api.Me)

    def users(self) -> Iterator[api.User]:
        """All users."""
        return self._pages("/admin/users", api.UserPage, lambda page: page.users)

    def create_user(self, body: api.UserCreate) -> api.User:
        """Add a user."""
        return self.act("/admin/users", api.User, body)

    def change_user(self, user_id: str, body: api.UserChange, version: int) -> api.User:
        """Change a role, disable or enable."""
        return self.send("PATCH", _at("admin", "users", user_id), api.User, body, _version(version))

    def tokens(self, user: str | None = None) -> Iterator[api.TokenInfo]:
        """All tokens, or one user's, without their secrets."""
        return self._pages("/admin/tokens", api.TokenPage, lambda page: page.tokens, {"user": user})

    def issue_token(self, body: api.TokenCreate) -> api.TokenIssued:
        """Issue a token; only this answer holds its secret."""
        return self.act("/admin/tokens", api.TokenIssued, body)

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token."""
        self.delete(_at("admin", "tokens", token_id))

    def policy(self) -> api.PolicyAnswer:
        """What an Org Review needs."""
        return self.get("/admin/policy", api.PolicyAnswer)

    def change_policy(self, body: api.Policy, version: int) -> api.PolicyAnswer:
        """Change it; a field that was not set stays."""
        return self.send("PATCH", "/admin/policy", api.PolicyAnswer, body, _version(version))

    def audit(self) -> Iterator[api.AuditEvent]:
        """Administrative and publishing actions, newest first."""
        return self._pages("/admin/audit", api.AuditPage, lambda page: page.events)

    # --- projects ---

    def projects(self, name: str | None = None) -> Iterator[api.Project]:
        """The caller's Projects; ``name`` filters by exact name."""
        return self._pages("/projects", api.ProjectPage, lambda page: page.projects, {"name": name})

    def project(self, project_id: str) -> api.Project:
        """One Project."""
        return self.get(_at("projects", project_id), api.Project)

    def create_project(self, body: api.ProjectCreate) -> api.Project:
        """Create a Project; the caller becomes its owner."""
        return self.act("/projects", api.Project, body)

    def change_project(self, project_id: str, body: api.ProjectChange, version: int) -> api.Project:
        """Change name, guide path or policy."""
        return self.send("PATCH", _at("projects", project_id), api.Project, body, _version(version))

    def delete_project(self, project_id: str, version: int) -> None:
        """Delete a Project."""
        self.delete(_at("projects", project_id), _version(version))

    def members(self, project_id: str) -> Iterator[api.Member]:
        """The members of a Project."""
        path = _at("projects", project_id, "members")
        return self._pages(path, api.MemberPage, lambda page: page.members)

    def add_member(self, project_id: str, body: api.MemberAdd) -> api.Member:
        """Add a member by e-mail address."""
        return self.act(_at("projects", project_id, "members"), api.Member, body)

    def change_member(self, project_id: str, user_id: str, body: api.MemberChange) -> api.Member:
        """Change a member's role."""
        return self.send("PATCH", _at("projects", project_id, "members", user_id), api.Member, body)

    def remove_member(self, project_id: str, user_id: str) -> None:
        """Remove a member."""
        self.delete(_at("projects", project_id, "members", user_id))

    # --- memory ---

    def memories(self, project_id: str) -> Iterator[api.ResourceSummary]:
        """What is published in a Project."""
        path = _at("projects", project_id, "memories")
        return self._pages(path, api.ResourcePage, lambda page: page.resources)

    def memory(self, project_id: str, resource_id: str) -> api.ResourceAnswer:
        """One resource of a Project, with its body."""
        return self.get(_at("projects", project_id, "memories", resource_id), api.ResourceAnswer)

    def history(self, project_id: str, resource_id: str) -> Iterator[api.HistoryEntry]:
        """What happened to one resource of a Project's view, newest first."""
        path = _at("projects", project_id, "memories", resource_id, "history")
        return self._pages(path, api.HistoryPage, lambda page: page.entries)

    def blame(self, project_id: str, resource_id: str, commit: str | None = None) -> api.Blame:
        """A resource of a Project's view with the commit that last changed each line."""
        path = _at("projects", project_id, "memories", resource_id, "blame")
        return self.get(path, api.Blame, {"commit": commit})

    def org_memories(self, project_id: str | None = None) -> Iterator[api.ResourceSummary]:
        """The Organization's resources; with a Project, whether it selects each."""
        query: Query = {"project_id": project_id}
        return self._pages("/org/memories", api.ResourcePage, lambda page: page.resources, query)

    def org_memory(self, resource_id: str) -> api.ResourceAnswer:
        """One resource of the Organization, with its body."""
        return self.get(_at("org", "memories", resource_id), api.ResourceAnswer)

    def adaptations(self, project_id: str) -> api.Adaptations:
        """The adaptations of a Project, and whether their sources moved."""
        return self.get(_at("projects", project_id, "adaptations"), api.Adaptations)

    def selections(self, project_id: str) -> api.Selections:
        """The Org resources that a Project selects."""
        return self.get(_at("projects", project_id, "org-selections"), api.Selections)

    def put_selections(self, project_id: str, body: api.SelectionsPut, revision: int) -> api.Selections:
        """Replace the whole set."""
        path = _at("projects", project_id, "org-selections")
        return self.send("PUT", path, api.Selections, body, _version(revision))

    def commits(self, project_id: str, after: str | None) -> api.CommitPage:
        """The commits of a Project after one, oldest first."""
        return self.get(_at("projects", project_id, "commits"), api.CommitPage, {"after": after})

    def org_commits(self, after: str | None) -> api.CommitPage:
        """The commits of the Organization after one, oldest first."""
        return self.get("/org/commits", api.CommitPage, {"after": after})

    def snapshot(self, project_id: str) -> tuple[api.SnapshotHeader, list[PublishedResource]]:
        """The whole published state of a Project at one commit; every body has been checked."""
        with self.stream(_at("projects", project_id, "snapshot")) as lines:
            return _read_snapshot(project_id, lines)

    # --- sync and drafts ---

    def sync(
        self, cursor: str | None, wait: float = 0, interrupted: Callable[[], bool] = _never
    ) -> api.SyncAnswer | None:
        """What is new since a cursor; None when nothing is. See `OrgHttp.poll`."""
        seconds = min(round(wait), limits.LONG_POLL_SECONDS)
        query: Query = {"cursor": cursor, "wait": seconds or None}
        return self.poll("/sync", api.SyncAnswer, query, seconds, interrupted)

    def upload(self, body: api.UploadRequest) -> api.UploadAnswer:
        """Send operations of one Draft; idempotent by their ids."""
        path = _at("drafts", body.draft.draft_id, "operations")
        return self.send_repeatable("POST", path, body, api.UploadAnswer)

    def drafts(self, project_id: str | None = None, status: DraftStatus | None = None) -> Iterator[api.Draft]:
        """The caller's Drafts."""
        query: Query = {"project_id": project_id, "status": status}
        return self._pages("/drafts", api.DraftPage, lambda page: page.drafts, query)

    def draft(self, draft_id: str) -> api.DraftDetail:
        """One own Draft with its states."""
        return self.get(_at("drafts", draft_id), api.DraftDetail)

    def discard_draft(self, draft_id: str) -> None:
        """End a Draft; nothing is published."""
        self.delete(_at("drafts", draft_id))

    def reconciliation(self, draft_id: str) -> api.Candidate:
        """What becomes of a Draft on the newest published state, as the server sees it."""
        return self.send("POST", _at("drafts", draft_id, "reconciliation"), api.Candidate)

    # --- reviews ---

    def reviews(
        self,
        project_id: str | None = None,
        status: ReviewStatus | None = None,
        scope: Scope | None = None,
    ) -> Iterator[api.ReviewSummary]:
        """Reviews that the caller may read, newest first."""
        query: Query = {"project_id": project_id, "status": status, "scope": scope}
        return self._pages("/reviews", api.ReviewPage, lambda page: page.reviews, query)

    def review(self, review_id: str) -> api.ReviewDetail:
        """One Review with the states and diffs of its Drafts."""
        return self.get(_at("reviews", review_id), api.ReviewDetail)

    def create_review(self, body: api.ReviewCreate, key: str | None = None) -> api.ReviewDetail:
        """Open a Review of Drafts that the server has; once, however often it is sent with one key."""
        return self.act("/reviews", api.ReviewDetail, body, key=key)

    def decide(self, review_id: str, body: api.DecisionCreate) -> api.ReviewDetail:
        """Approve or reject."""
        return self.act(_at("reviews", review_id, "decisions"), api.ReviewDetail, body)

    def merge(self, review_id: str, version: int, ref: api.Ref) -> api.MergeAnswer:
        """Publish, provided that Review and ref still are what was inspected."""
        body, etag = api.VersionBody(version=version), f'"{ref.commit_id or api.EMPTY_REF}"'
        return self.act(_at("reviews", review_id, "merges"), api.MergeAnswer, body, if_match=etag)

    def withdraw(self, review_id: str, version: int) -> api.ReviewDetail:
        """Take an own Review back."""
        body = api.VersionBody(version=version)
        return self.act(_at("reviews", review_id, "withdrawals"), api.ReviewDetail, body)

    def contribute(self, review_id: str) -> api.ReviewDetail:
        """Try the Org contribution of a merged Review again; returns its Org Review."""
        return self.send("POST", _at("reviews", review_id, "org-contribution"), api.ReviewDetail)

    def comments(self, review_id: str) -> Iterator[api.Comment]:
        """The comments of a Review, oldest first."""
        path = _at("reviews", review_id, "comments")
        return self._pages(path, api.CommentPage, lambda page: page.comments)

    def add_comment(self, review_id: str, body: api.CommentCreate) -> api.Comment:
        """Comment a Review."""
        return self.act(_at("reviews", review_id, "comments"), api.Comment, body)

    def resolve_comment(self, review_id: str, comment_id: str, resolved: bool) -> api.Comment:
        """Resolve a comment, or open it again."""
        path = _at("reviews", review_id, "comments", comment_id)
        return self.send("PATCH", path, api.Comment, api.CommentChange(resolved=resolved))

    def _pages(
        self,
        path: str,
        model: type[_Record],
        items: Callable[[Any], list[_Item]],
        query: Query | None = None,
    ) -> Iterator[_Item]:
        cursor: str | None = None
        while True:
            wanted = {**(query or {}), "limit": limits.PAGE_MAX, "cursor": cursor}
            page: Any = self.get(path, model, wanted)
            yield from items(page)
            if (cursor := page.next_cursor) is None:
                return


_PUBLISHED = TypeAdapter(PublishedResource)


def _read_snapshot(
    project_id: str, lines: Iterator[bytes]
) -> tuple[api.SnapshotHeader, list[PublishedResource]]:
    resources: list[PublishedResource] = []
    try:
        header = api.SnapshotHeader.model_validate_json(next(lines, b""), extra="ignore")
        for _ in range(header.count):
            resource = _PUBLISHED.validate_json(next(lines, b""), extra="ignore")
            if content_hash(resource.body) != resource.content_hash:
                raise _bad_snapshot(project_id, f"the text of {resource.resource_id} is not the one named")
            resources.append(resource)
        end = api.SnapshotEnd.model_validate_json(next(lines, b""), extra="ignore")
    except ValidationError as error:
        # Most likely it was cut on the way; the next round asks again.
        raise InterleafError(
            ErrorCode.ORG_SERVER_UNAVAILABLE,
            "The snapshot arrived incomplete; Interleaf asks for it again by itself.",
            details={"project_id": project_id},
        ) from error
    if header.project_id != project_id or end.count != header.count:
        raise _bad_snapshot(project_id, "it is not what was asked for")
    return header, resources


def _bad_snapshot(project_id: str, why: str) -> InterleafError:
    return InterleafError(
        ErrorCode.CHAIN_BROKEN,
        f"The snapshot received was not applied: {why}. Tell the operator of the server.",
        details={"project_id": project_id, "reason": "snapshot"},
    )

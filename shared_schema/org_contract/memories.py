"""What is published: resources, selections, adaptations, commits, snapshots."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shared_schema.memory import Contract, OrgSource, PublishedResource, Scope
from shared_schema.org_contract.common import Id
from shared_schema.org_contract.projects import Ref


class ResourceSummary(Contract):
    """One published resource without its body."""

    resource_id: str
    scope: Scope
    path: str
    title: str
    description: str
    content_hash: str
    org_source: OrgSource | None = None
    selected: bool | None = None
    """In an Org listing with ``project_id``: whether that Project selects it."""


class ResourcePage(Contract):
    """GET /projects/{id}/memories and GET /org/memories."""

    resources: list[ResourceSummary]
    next_cursor: str | None


class ResourceAnswer(Contract):
    """GET /projects/{id}/memories/{mem} and GET /org/memories/{mem}."""

    resource: PublishedResource
    ref: Ref


class Selections(Contract):
    """GET and PUT /projects/{id}/org-selections: the whole set."""

    revision: int
    resources: list[ResourceSummary]


class SelectionsPut(Contract):
    """PUT /projects/{id}/org-selections, with If-Match revision."""

    resource_ids: list[Id] = Field(max_length=20_000)


class Adaptation(Contract):
    """One adaptation of a Project and how its source stands."""

    resource_id: str
    path: str
    org_source: OrgSource
    source_path: str | None
    """Null when the source was deleted."""
    newest_commit_id: str | None
    outdated: bool


class Adaptations(Contract):
    """GET /projects/{id}/adaptations."""

    adaptations: list[Adaptation]


class CommitChange(Contract):
    """One change of a commit: the hashed fields (see ``rules.chain.Change``) and the body."""

    resource_id: str
    scope: Scope
    path: str
    description: str
    content_hash: str
    org_source: OrgSource | None = None
    removed: bool = False
    body: str | None = None
    """Null on a removal."""


class CommitRecord(Contract):
    """One verified step of an authority's history."""

    commit_id: str
    owner: str
    seq: int
    parent: str | None
    created_at: int
    review_id: str | None
    author_id: str | None
    changes: list[CommitChange]


class CommitPage(Contract):
    """GET /projects/{id}/commits?after= and GET /org/commits?after=, oldest first."""

    commits: list[CommitRecord]
    has_more: bool


class SnapshotHeader(Contract):
    """First line of a snapshot (NDJSON); then one PublishedResource a line; then SnapshotEnd."""

    record: Literal["snapshot"] = "snapshot"
    project_id: str
    ref: Ref
    count: int


class SnapshotEnd(Contract):
    """Last line of a snapshot; a body without it was cut."""

    record: Literal["end"] = "end"
    count: int

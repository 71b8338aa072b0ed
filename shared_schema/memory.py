"""Resources as values: what is published, and what a Project shows on one machine."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from shared_schema import limits
from shared_schema.ids import is_resource_id

KIND: Literal["memory"] = "memory"


class Contract(BaseModel):
    """Base of every wire model: unknown fields are refused, values are not coerced, never mutated."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _resource_id(value: str) -> str:
    if not is_resource_id(value):
        raise ValueError("must be a resource id such as mem_0192f0c4")
    return value


ResourceId = Annotated[str, Field(max_length=limits.IDENTIFIER_CHARACTERS), AfterValidator(_resource_id)]


class Scope(StrEnum):
    """Whose authority a resource or a Draft belongs to."""

    ORG = "org"
    PROJECT = "project"


class Provenance(StrEnum):
    """Whether a reader sees published text or a local Draft."""

    AUTHORITY = "authority"
    DRAFT = "draft"


class OrgSource(Contract):
    """A fixed version of an Org resource: the resource and the Org commit that published it.

    On a Project-owned resource it makes that resource an adaptation of the source. On an Org
    reference it names the reference's own version.
    """

    resource_id: str
    commit_id: str


class ResourceState(Contract):
    """All that an author may change about one resource, at one moment.

    ``exists`` false is a deleted or not yet created resource; its other fields are then empty.
    """

    exists: bool
    path: str = ""
    description: str = ""
    body: str = ""
    org_source: OrgSource | None = None


ABSENT = ResourceState(exists=False)


class PublishedResource(Contract):
    """One published resource as a Project or the Organization shows it, body included."""

    resource_id: str
    scope: Scope
    path: str
    description: str
    body: str
    content_hash: str
    org_source: OrgSource | None = None

    def state(self) -> ResourceState:
        """Return the state that a Draft on this resource starts from.

        The ``org_source`` of an Org reference is its own version, no link of an adaptation, so it
        is left out there.
        """
        source = self.org_source if self.scope is Scope.PROJECT else None
        return ResourceState(
            exists=True, path=self.path, description=self.description, body=self.body, org_source=source
        )

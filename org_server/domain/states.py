"""States of resources with the body's hash in place of the body.

Comparing, judging and publishing need no text, so bodies are read only where they are shown or
merged line by line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from shared_schema.memory import OrgSource, ResourceState
from shared_schema.rules.hashing import content_hash


@dataclass(frozen=True)
class HashedState:
    """A ``ResourceState`` whose body is named by its hash; None where nothing exists."""

    exists: bool
    path: str = ""
    description: str = ""
    content_hash: str | None = None
    org_source: OrgSource | None = None

    @classmethod
    def of(cls, state: ResourceState) -> Self:
        """Return the hashed form of a state; a state that does not exist is `GONE` whatever it holds."""
        if not state.exists:
            return cls(exists=False)
        return cls(True, state.path, state.description, content_hash(state.body), state.org_source)

    def with_body(self, bodies: Mapping[str, str]) -> ResourceState:
        """Return the full state; ``bodies`` maps content hashes to texts."""
        if not self.exists or self.content_hash is None:
            return ResourceState(exists=False)
        return ResourceState(
            exists=True,
            path=self.path,
            description=self.description,
            body=bodies[self.content_hash],
            org_source=self.org_source,
        )

    @property
    def source_id(self) -> str | None:
        """The Org resource that this state adapts, if any."""
        return self.org_source.resource_id if self.exists and self.org_source is not None else None

    def as_json(self) -> dict[str, Any]:
        """Return the form that is stored and hashed."""
        source = self.org_source
        return {
            "exists": self.exists,
            "path": self.path,
            "description": self.description,
            "content_hash": self.content_hash,
            "org_source": None if source is None else source.model_dump(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Rebuild what `as_json` made."""
        source = value["org_source"]
        return cls(
            exists=value["exists"],
            path=value["path"],
            description=value["description"],
            content_hash=value["content_hash"],
            org_source=None if source is None else OrgSource.model_validate(source),
        )


GONE = HashedState(exists=False)

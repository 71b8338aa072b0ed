"""A frozen corpus: what a Project showed when a question was asked, kept apart from what it shows now.

A document is known by the digest of everything that a reader could see of it, its text included by
its content hash. So equal documents of many corpora are one, and a corpus is a set of digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from client.domain.effective_memory import DraftRef, EffectiveResource, visible_fields
from shared_schema.memory import OrgSource, Provenance, Scope
from shared_schema.rules.hashing import canonical_json

_FORM: Final = 1
"""Part of every digest: another form of a document is another document."""


@dataclass(frozen=True)
class FrozenDocument:
    """One document of a corpus without its text, which its content hash names."""

    resource_id: str
    scope: Scope
    path: str
    title: str
    description: str
    content_hash: str
    provenance: Provenance
    org_source: OrgSource | None = None
    draft: DraftRef | None = None

    @classmethod
    def of(cls, resource: EffectiveResource) -> FrozenDocument:
        """Return what is kept of a visible resource beside its text."""
        return cls(
            resource.resource_id,
            resource.scope,
            resource.path,
            resource.title,
            resource.description,
            resource.content_hash,
            resource.provenance,
            resource.org_source,
            resource.draft,
        )

    def with_text(self, body: str) -> EffectiveResource:
        """Return the resource as it was seen."""
        return EffectiveResource(
            resource_id=self.resource_id,
            scope=self.scope,
            path=self.path,
            title=self.title,
            description=self.description,
            body=body,
            content_hash=self.content_hash,
            provenance=self.provenance,
            org_source=self.org_source,
            draft=self.draft,
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 over every field, in hex."""
        return hashlib.sha256(canonical_json([_FORM, *visible_fields(self)])).hexdigest()


def corpus_digest(digests: Iterable[str]) -> str:
    """Return the SHA-256 over a corpus's documents, in hex; their order does not matter."""
    return hashlib.sha256("\n".join(sorted(digests)).encode("ascii")).hexdigest()

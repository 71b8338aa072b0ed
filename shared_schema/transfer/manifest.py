"""The list that lies in every exported folder, so that importing it again knows what it holds."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, ValidationError

from shared_schema import limits
from shared_schema.memory import Contract, OrgSource, Scope

MANIFEST_NAME: Final = ".interleaf-export.json"
MANIFEST_BYTES: Final = 256 * limits.MIB


class ExportedResource(Contract):
    """One exported document; its text lies at ``path``."""

    resource_id: str
    path: str
    scope: Scope = Field(strict=False)
    """Whose it was; in a Project, ``org`` is a selected Org document."""
    description: str
    content_hash: str
    org_source: OrgSource | None = None
    draft_id: str | None = None
    """The Draft whose text it is; none for what is published."""


class Manifest(Contract):
    """Everything about an exported folder that its files do not say; the same for the same state."""

    format: Literal[1] = 1
    organization_id: str | None = None
    project_id: str | None = None
    """None: the Organization's own memory."""
    name: str
    commit_id: str | None = None
    """The commit that was exported; none where nothing was published."""
    resources: list[ExportedResource]
    """By path."""


def read_manifest(content: bytes) -> Manifest | None:
    """Return the manifest that these bytes hold, or None when they hold none."""
    try:
        return Manifest.model_validate_json(content)
    except ValidationError:
        return None


def write_manifest(manifest: Manifest) -> bytes:
    """Return the manifest's bytes, readable by people too."""
    return manifest.model_dump_json(indent=2, exclude_none=True).encode() + b"\n"

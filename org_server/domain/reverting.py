"""What takes a change back: the operations of its inverse, and what the Review is called."""

from __future__ import annotations

from typing import Any, Final

from org_server.domain.states import HashedState
from shared_schema import limits
from shared_schema.drafts import OperationKind

_PREFIX: Final = "Revert: "


def revert_title(title: str) -> str:
    """Return the title of the Review that takes back the one with this title."""
    return (_PREFIX + title)[: limits.TITLE_CHARACTERS]


def inverse_operations(
    base: HashedState, state: HashedState, base_commit: str | None
) -> list[dict[str, Any]]:
    """Return the operations that turn ``base`` into ``state``, with the body's hash in place of the body.

    The two differ. A link to another Org source is no single operation, so there the complete state
    is set.
    """
    if not state.exists:
        return [{"kind": OperationKind.DELETE.value}]
    content: dict[str, Any] = {"content_hash": state.content_hash}
    if not base.exists:
        kind = OperationKind.CREATE.value
        return [{"kind": kind, "path": state.path, "description": state.description} | content]
    if state.org_source != base.org_source:
        return [{"kind": OperationKind.REBASE.value, "base_commit": base_commit or ""} | content]
    made: list[dict[str, Any]] = []
    if state.path != base.path:
        made.append({"kind": OperationKind.RENAME.value, "path": state.path} | content)
    if (state.content_hash, state.description) != (base.content_hash, base.description):
        made.append({"kind": OperationKind.UPDATE.value, "description": state.description} | content)
    return made

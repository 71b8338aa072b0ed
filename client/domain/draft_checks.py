"""What a local write is decided on, and every check that may refuse it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from client.domain.local_draft import LocalDraft
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import ResourceState, Scope
from shared_schema.rules.paths import PathSet, normalise_path
from shared_schema.rules.text import check_body, check_description


@dataclass(frozen=True, slots=True)
class Situation:
    """What a write is decided on: one consistent cut of the Project."""

    memory: EffectiveMemory
    paths: PathSet
    draft: LocalDraft | None = None
    """The active Draft on the target."""
    beneath: ResourceState | None = None
    """What the Project would show of the target without that Draft; none: nothing."""
    beneath_commit: str | None = None
    """The commit of the target's authority that ``beneath`` belongs to."""
    sent: bool = False
    """Whether the server may have any operation of the Draft."""
    not_sent: tuple[str, ...] = ()
    """Operations at the end of the Draft that the server cannot have."""


@dataclass(frozen=True, slots=True)
class Change:
    """What shall differ; None stays as it is."""

    path: str | None = None
    body: str | None = None
    description: str | None = None


def visible_target(memory: EffectiveMemory, resource_id: str) -> EffectiveResource:
    """Return the resource with this id; ``memory_resource_not_found`` when none is visible.

    The details name the adaptation that replaces it, or the id when a path was given.
    """
    item = memory.by_id.get(resource_id)
    if item is not None:
        return item
    details: dict[str, object] = {"missing": [resource_id]}
    message = "No resource has this id. Activate or load to find the right one."
    if (adaptation := memory.adapted_by.get(resource_id)) is not None:
        details["adapted_by"] = adaptation
        message = f"This Project uses an adaptation instead; use its id: {adaptation}."
    elif (by_path := memory.by_path.get(resource_id)) is not None:
        details["resource_id"] = by_path.resource_id
        message = f"This is a path; use the resource's id: {by_path.resource_id}."
    raise InterleafError(ErrorCode.MEMORY_RESOURCE_NOT_FOUND, message, details=details)


def check_hash(item: EffectiveResource, expected: str | None) -> None:
    """Raise ``memory_content_changed`` when the caller saw another text; None was not looked at."""
    if expected is not None and expected != item.content_hash:
        raise InterleafError(
            ErrorCode.MEMORY_CONTENT_CHANGED,
            "The resource changed since it was loaded. Load it again and reconsider the edit.",
            details={"resource_id": item.resource_id, "current_hash": item.content_hash},
        )


def appendable(situation: Situation, scope: Scope | None) -> LocalDraft | None:
    """Return the active Draft that a further operation goes to, or None.

    Raises ``draft_not_open`` when it cannot be read, ``already_exists`` when it is a proposal that
    Effective Memory does not show, or when the caller asks for another scope than it has.
    """
    draft = situation.draft
    if draft is None:
        return None
    details = {"draft_id": draft.draft_id}
    if draft.broken or draft.draft_id in situation.memory.broken:
        raise InterleafError(
            ErrorCode.DRAFT_NOT_OPEN,
            f"The open Draft on this resource cannot be applied. Discard {draft.draft_id} first.",
            details=details,
        )
    if not draft.overlay:
        raise InterleafError(
            ErrorCode.ALREADY_EXISTS,
            f"A proposal on this resource waits for a decision. Decide or discard {draft.draft_id} first.",
            details=details,
        )
    if scope is not None and scope is not draft.scope:
        raise InterleafError(
            ErrorCode.ALREADY_EXISTS,
            f"The open Draft on this resource has {draft.scope.value} scope. "
            f"Edit it there, or discard {draft.draft_id} first.",
            details=details,
        )
    return draft


def free_path(paths: PathSet, raw: str, own: Collection[str]) -> str:
    """Return the path in the form that is stored, free but for the resources in ``own``.

    Raises ``invalid_path`` or ``path_occupied``.
    """
    path = normalise_path(raw)
    _check_free(paths, path, own)
    return path


def check_texts(wanted: Change) -> None:
    """Raise ``invalid_arguments`` for a body or a description that cannot be stored."""
    if wanted.body is not None:
        check_body(wanted.body)
    if wanted.description is not None:
        check_description(wanted.description)


def check_room_beneath(situation: Situation, draft: LocalDraft) -> None:
    """Raise ``path_occupied`` when what a discard brings back would clash with another resource."""
    item = situation.memory.by_id.get(draft.resource_id)
    state, own = situation.beneath, {draft.resource_id}
    source = state.org_source.resource_id if state and state.org_source else None
    if state is not None and draft.resource_id not in situation.memory.adapted_by:
        _check_free(situation.paths, state.path, own | ({source} if source else set()))
    if item is not None and item.adapts != source:
        check_room_for_source(situation, item)


def check_room_for_source(situation: Situation, item: EffectiveResource) -> None:
    """Raise ``path_occupied`` when the Org source of a leaving adaptation has no room any more."""
    memory, source = situation.memory, item.adapts
    if source is None or memory.adapted_by.get(source) != item.resource_id:
        return
    if (hidden := memory.hidden.get(source)) is not None:
        _check_free(situation.paths, hidden.path, {source, item.resource_id})


def _check_free(paths: PathSet, path: str, own: Collection[str]) -> None:
    holder = next((holder for holder in paths.holders(path) if holder not in own), None)
    if holder is not None:
        raise InterleafError(
            ErrorCode.PATH_OCCUPIED,
            f"Another resource of this Project is at, above or below {path}. "
            "Choose another path, or edit or rename that resource.",
            details={"path": path, "resource_id": holder},
        )

"""An authority's history as a chain of hashes, and the hashes that decisions are bound to.

A commit id covers what the commit changes, its place, its owner and its parent's id, so a client
verifies every step that it applies and two histories never share an id. Times and people are not
covered: they are facts about a commit, no part of what it publishes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Never

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Contract, OrgSource, ResourceState, Scope
from shared_schema.rules.hashing import canonical_json, content_hash, fingerprint


class Change(Contract):
    """What a commit does to one resource: its complete new fields, or its removal.

    The body is covered by its hash. On a removal the other fields say what was removed.
    """

    resource_id: str
    scope: Scope
    path: str
    description: str
    content_hash: str
    org_source: OrgSource | None = None
    removed: bool = False


def commit_id(owner: str, seq: int, parent: str | None, changes: Iterable[Change]) -> str:
    """Return the hex SHA-256 of the canonical JSON of ``{owner, seq, parent, changes}``.

    ``owner`` is the Project's or the Organization's id, ``seq`` counts from 1, ``parent`` is null
    for the first commit. The order in which changes are given does not matter; two changes of
    one resource are a ``ValueError``.
    """
    listed = sorted(
        (change.model_dump(mode="json") for change in changes), key=lambda each: each["resource_id"]
    )
    if len({each["resource_id"] for each in listed}) != len(listed):
        raise ValueError("a commit changes a resource at most once")
    value = {"owner": owner, "seq": seq, "parent": parent, "changes": listed}
    return hashlib.sha256(canonical_json(value)).hexdigest()


def verify_step(
    *,
    owner: str,
    seq: int,
    parent: str | None,
    claimed_id: str,
    changes: Iterable[Change],
    head_id: str | None,
    head_seq: int,
    bodies: Mapping[str, str] | None = None,
) -> None:
    """Raise ``chain_broken`` unless the commit follows the head and is what its id says.

    ``head_id`` and ``head_seq`` are the last verified commit of the same owner (None and 0 before
    the first). With ``bodies`` (by resource id) every change that is no removal needs a body with
    the hash that the commit names. ``details``: ``commit_id``, ``owner``, ``seq``, and ``reason``,
    one of ``parent``, ``seq``, ``id`` and ``body``.
    """
    listed = list(changes)
    details = {"commit_id": claimed_id, "owner": owner, "seq": seq}
    if parent != head_id:
        _broken("it does not follow the commit that is installed here", "parent", details)
    if seq != head_seq + 1:
        _broken(f"it is number {seq} where {head_seq + 1} was due", "seq", details)
    try:
        expected = commit_id(owner, seq, parent, listed)
    except ValueError:
        _broken("its content cannot be hashed", "id", details)
    if expected != claimed_id:
        _broken("its content is not what its id names", "id", details)
    if bodies is None:
        return
    for change in listed:
        if not change.removed and not _has_hash(bodies.get(change.resource_id), change.content_hash):
            _broken(
                "a text is not the one that it names", "body", details | {"resource_id": change.resource_id}
            )


def effective_hash(project_id: str, commit_id: str | None, items: Iterable[Mapping[str, Any]]) -> str:
    """Return ``sha256:…`` over all that a reader of a Project can see on one machine.

    Every item is the JSON-able mapping of a resource's visible fields with at least
    ``resource_id``; put the body in as its ``content_hash``, and leave no visible field out. The
    order of items does not matter.
    """
    listed = sorted((dict(item) for item in items), key=lambda item: str(item["resource_id"]))
    return fingerprint({"project_id": project_id, "commit_id": commit_id, "items": listed})


def review_result_hash(results: Iterable[tuple[str, ResourceState]]) -> str:
    """Return ``sha256:…`` over the final states of a Review's Drafts, in the Review's order.

    An approval is bound to it: whatever changes what would be published, its order or its target
    changes the hash. ``results`` pairs resource ids with states.
    """
    return fingerprint(
        [
            {"resource_id": resource_id, "state": state.model_dump(mode="json")}
            for resource_id, state in results
        ]
    )


def _has_hash(body: str | None, expected: str) -> bool:
    try:
        return body is not None and content_hash(body) == expected
    except ValueError:
        return False


def _broken(why: str, reason: str, details: Mapping[str, Any]) -> Never:
    raise InterleafError(
        ErrorCode.CHAIN_BROKEN,
        f"The commit received was not applied: {why}. Tell the operator of the server.",
        details={**details, "reason": reason},
    )

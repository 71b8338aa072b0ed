"""Refs: an authority's name for its newest commit, moved only by compare-and-swap."""

from typing import NamedTuple

from shared_schema.errors import ErrorCode, InterleafError


class RefValue(NamedTuple):
    """Where a ref stands; without any commit ``commit_id`` is None and ``seq`` 0."""

    commit_id: str | None
    seq: int


def require_ref(expected: str | None, actual: str | None) -> None:
    """Raise ``precondition_failed`` (details: ``expected``, ``actual``) unless the ref stands there."""
    if expected != actual:
        raise InterleafError(
            ErrorCode.PRECONDITION_FAILED,
            "The ref moved since you inspected it. Read the newest state and decide again.",
            details={"expected": expected, "actual": actual},
        )


def require_version(expected: int, actual: int) -> None:
    """Raise ``version_conflict`` (details: ``expected``, ``actual``) unless both are equal."""
    if expected != actual:
        raise InterleafError(
            ErrorCode.VERSION_CONFLICT,
            "It changed since you inspected it. Read the newest version and decide again.",
            details={"expected": expected, "actual": actual},
        )

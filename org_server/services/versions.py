"""Optimistic concurrency: what was inspected has to be what stands."""

from __future__ import annotations

from shared_schema.errors import ErrorCode, InterleafError


def check_version(expected: int, actual: int) -> None:
    """Raise ``version_conflict`` unless the caller inspected the version that stands."""
    if expected != actual:
        raise InterleafError(
            ErrorCode.VERSION_CONFLICT,
            f"Version {expected} is stale; {actual} stands. Read it and decide again.",
            details={"expected": expected, "actual": actual},
        )

"""The manifest of promised behaviours.

Each has an id, where the promise was made, and one sentence. Tests carry the id with
``@pytest.mark.requirement("id")``; ``tests/test_requirements.py`` fails when an id has no test, or a
test names an id that is not here. A promise not kept yet is data, not silence: it says why in
``deferred``.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class R(NamedTuple):
    """One promised behaviour."""

    id: str
    sentence: str
    source: str
    """``contract`` (the tool contract), or the subject: domain, server, retrieval, sync, quality."""
    deferred: str = ""


REQUIREMENTS: Final[tuple[R, ...]] = (
    R("manifest.two-way", "every promise has a test and every test's promise is listed", "quality"),
)

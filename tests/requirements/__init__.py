"""The manifest of promised behaviours.

Each has an id, where the promise was made, and one sentence. Tests carry the id with
``@pytest.mark.requirement("id")``; ``tests/test_requirements.py`` fails when an id has no test, or a
test names an id that is not here. A promise not kept yet is data, not silence: it says why in
``deferred``.
"""

from __future__ import annotations

from typing import Final

from tests.requirements import (
    main_job,
    server_access,
    server_api,
    server_history,
    server_operation,
    server_references,
    server_reviews,
    transfer,
)
from tests.requirements.form import R

AREAS = (
    main_job,
    server_reviews,
    server_references,
    server_access,
    server_api,
    server_history,
    server_operation,
    transfer,
)
REQUIREMENTS: Final[tuple[R, ...]] = tuple(promise for area in AREAS for promise in area.PROMISES)

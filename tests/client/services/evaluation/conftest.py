from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.services.evaluation.case_world import CaseWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CaseWorld]:
    made = CaseWorld(tmp_path / "home")
    yield made
    made.close()

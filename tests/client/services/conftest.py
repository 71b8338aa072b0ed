from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.local_world import LocalWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    """A machine with one Project: ``mem_own`` at own.md, and the Org reference ``mem_ref`` at ref.md."""
    made = LocalWorld(tmp_path / "home")
    yield made
    made.close()

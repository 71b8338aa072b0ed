"""What tests of several parts share."""

from __future__ import annotations

from pathlib import Path

import pytest

from client.models.catalog import MULTILINGUAL_E5_SMALL
from client.models.files import ModelFiles, default_models_dir
from client.models.preparation import prepare_model


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """The folder of prepared models; the default model is prepared into it when it is not there yet."""
    folder = default_models_dir()
    prepare_model(MULTILINGUAL_E5_SMALL, folder)
    return folder


@pytest.fixture(scope="session")
def prepared_model(models_dir: Path) -> ModelFiles:
    """The default embedding model, prepared."""
    return prepare_model(MULTILINGUAL_E5_SMALL, models_dir)

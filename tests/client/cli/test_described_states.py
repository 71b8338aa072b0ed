"""What the command line says of models and indexes, in one line each."""

from __future__ import annotations

import pytest

from client.cli.daemon_commands import describe_index, describe_models
from shared_schema.daemon_contract import IndexStatus, ModelStatus


def index(state: str, **more: object) -> str:
    values: dict[str, object] = {
        "project_id": "prj_1",
        "state": state,
        "index_revision": None,
        "units": 5,
        "resources": 4,
        "done": 3,
        "total": 5,
        "lag": False,
        "reranker": "late_interaction",
        "error": None,
    }
    return describe_index(IndexStatus.model_validate(values | more))


def models(**more: object) -> str:
    values: dict[str, object] = {
        "profile": "multilingual",
        "stage": "ready",
        "ready": True,
        "current_bytes": 1,
        "total_bytes": 1,
        "folder": "/models",
        "reranker": "late_interaction",
    }
    return describe_models(ModelStatus.model_validate(values | more))


@pytest.mark.requirement("retrieval.index.told")
@pytest.mark.parametrize("state", ["none", "building", "ready", "failed"])
def test_what_was_found_broken_is_said_in_every_state(state: str) -> None:
    broken = "The search index was broken and is built again: units.jsonl was changed."
    assert broken in index(state, error=broken)
    assert "broken" not in index(state)


def test_an_index_that_follows_says_so() -> None:
    assert index("ready", lag=True) == "ready: 5 units of 4 resources; newer text is being indexed"
    assert index("building") == "building: 3 of 5 units"


@pytest.mark.requirement("models.eviction")
def test_a_model_that_is_not_in_memory_is_ready_all_the_same() -> None:
    assert models(loaded=True).endswith("; loaded)")
    assert models(loaded=False).endswith("; unloaded, loads with the next question)")
    assert models(loaded=False).startswith("ready (multilingual")

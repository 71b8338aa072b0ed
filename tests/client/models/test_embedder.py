from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from client.domain.embedding import Embedder
from client.models.embedder import OnnxEmbedder
from client.models.files import ModelFiles
from client.models.projection import TokenProjection
from client.models.raw_embedding import RawEmbedding
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.models.tiny_model import HIDDEN, POSITIONS, TinyWeights, build_weights


def save_projection(path: Path, fingerprint: str, seed: int = 1) -> Path:
    chance = np.random.default_rng(seed)
    components = np.linalg.qr(chance.standard_normal((HIDDEN, 8)))[0].astype(np.float32)
    TokenProjection.save(path, np.zeros(HIDDEN, np.float32), components, fingerprint)
    return path


@pytest.fixture
def embedder(tiny_files: ModelFiles, tmp_path: Path) -> OnnxEmbedder:
    return OnnxEmbedder(tiny_files, save_projection(tmp_path / "p.npz", tiny_files.fingerprint))


def test_vectors_have_the_promised_shapes_types_and_lengths(embedder: Embedder) -> None:
    assert (embedder.dimensions, embedder.token_dimensions) == (HIDDEN, 8)
    query = embedder.embed_query("abc")
    assert (query.pooled.dtype, query.pooled.shape) == (np.float32, (HIDDEN,))
    assert (query.tokens.dtype, query.tokens.shape) == (np.float32, (3, 8))
    (passage,) = embedder.embed_passages(["abc"])
    assert (passage.tokens.dtype, passage.tokens.shape) == (np.int8, (3, 8))
    assert (passage.scales.dtype, passage.scales.shape) == (np.float16, (3,))
    assert np.allclose(np.linalg.norm(query.tokens, axis=1), 1, atol=1e-5)
    for pooled in (query.pooled, passage.pooled):
        assert abs(float(np.linalg.norm(pooled)) - 1) < 1e-5


@pytest.mark.requirement("models.one-pass")
def test_one_forward_pass_gives_pooled_and_token_vectors(
    embedder: OnnxEmbedder, tiny_files: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder.load()
    session = embedder._raw.session()
    runs: list[int] = []
    original = session._run_model

    def counted(*args: object, **kwargs: object) -> object:
        runs.append(1)
        return original(*args, **kwargs)

    monkeypatch.setattr(session, "_run_model", counted)
    embedder.embed_query("abc")
    assert len(runs) == 1
    embedder.embed_passages(["abc", "de", "f"])
    assert len(runs) == 2


def test_prefix_and_special_tokens_are_left_out_of_token_vectors_only(tiny_files: ModelFiles) -> None:
    raw = RawEmbedding(tiny_files)
    (vectors,) = raw.embed(["ab"], "query: ", 1)
    whole = raw.tokenizer().encode("query: ab")
    assert whole.tokens == ["<s>", "▁query", ":", "▁", "a", "b", "</s>"]
    output = raw.session().onnx_embed(["query: ab"]).model_output[0]
    # The prefix's last space stands alone here, so that it is the prefix's own.
    assert np.allclose(vectors.tokens, output[4:6], atol=1e-6)
    mean = output.mean(axis=0)
    assert np.allclose(vectors.pooled, mean / np.linalg.norm(mean), atol=1e-6)


def test_queries_and_passages_get_their_own_prefix(embedder: OnnxEmbedder) -> None:
    query, (passage,) = embedder.embed_query("abc"), embedder.embed_passages(["abc"])
    assert float(query.pooled @ passage.pooled) < 0.9999


@pytest.mark.requirement("models.batch-independent")
def test_order_and_vectors_do_not_depend_on_the_batch(embedder: OnnxEmbedder) -> None:
    texts = ["abcdefghij", "a", "", "xyz xyz xyz", "如何重置", "b", "cc", "abc", "zz zz"]
    together = embedder.embed_passages(texts)
    for text, vectors in zip(texts, together, strict=True):
        (alone,) = embedder.embed_passages([text])
        assert np.allclose(vectors.pooled, alone.pooled, atol=1e-5)
        assert np.abs(vectors.tokens.astype(int) - alone.tokens.astype(int)).max(initial=0) <= 1
    assert embedder.embed_passages([]) == []


def test_an_empty_text_has_a_pooled_vector_and_no_tokens(embedder: OnnxEmbedder) -> None:
    assert embedder.embed_query("").tokens.shape == (0, 8)
    (passage,) = embedder.embed_passages([""])
    assert passage.tokens.shape == (0, 8)
    assert abs(float(np.linalg.norm(passage.pooled)) - 1) < 1e-5


def test_a_long_text_is_truncated_for_embedding_and_counted_whole(embedder: OnnxEmbedder) -> None:
    long = "abc" * 100
    (passage,) = embedder.embed_passages([long])
    assert len(passage.tokens) < POSITIONS
    assert embedder.count_tokens([long, "", "ab", "如何"]) == [301, 0, 3, 3]


@pytest.mark.requirement("models.lazy")
def test_counting_tokens_loads_no_session_and_unloading_frees_it(embedder: OnnxEmbedder) -> None:
    embedder.count_tokens(["abc"])
    assert not embedder.loaded
    first = embedder.embed_query("abc")
    assert embedder.loaded
    embedder.unload()
    assert not embedder.loaded
    assert np.array_equal(embedder.embed_query("abc").pooled, first.pooled)


@pytest.mark.requirement("models.fingerprint")
def test_the_fingerprint_names_model_and_projection(tiny_files: ModelFiles, tmp_path: Path) -> None:
    one = OnnxEmbedder(tiny_files, save_projection(tmp_path / "a.npz", tiny_files.fingerprint, seed=1))
    same = OnnxEmbedder(tiny_files, save_projection(tmp_path / "b.npz", tiny_files.fingerprint, seed=1))
    other = OnnxEmbedder(tiny_files, save_projection(tmp_path / "c.npz", tiny_files.fingerprint, seed=2))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert one.fingerprint.startswith("tiny:")
    with pytest.raises(InterleafError, match="another model"):
        OnnxEmbedder(tiny_files)


def test_threads_get_the_same_vectors_as_one_thread(embedder: OnnxEmbedder) -> None:
    texts = [letter * size for letter in "abcxyz" for size in (1, 5, 20)]
    expected = [v.pooled for v in embedder.embed_passages(texts)]
    embedder.unload()
    results: dict[int, list[np.ndarray]] = {}

    def work(number: int) -> None:
        results[number] = [v.pooled for v in embedder.embed_passages(texts)]
        embedder.embed_query("abc")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == list(range(6))
    for found in results.values():
        assert np.allclose(found, expected, atol=1e-5)


@pytest.mark.requirement("models.explicit-error")
@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_files_that_cannot_be_loaded_give_an_explicit_error(
    tiny_files: ModelFiles, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    for file in (tiny_files.onnx, tiny_files.tokenizer):
        (folder / file.name).write_bytes(b"{}" if file.name == name else file.read_bytes())
    embedder = OnnxEmbedder(
        ModelFiles(tiny_files.model, folder), save_projection(tmp_path / "p.npz", tiny_files.fingerprint)
    )
    with pytest.raises(InterleafError) as caught:
        embedder.embed_query("abc")
    assert caught.value.code is ErrorCode.SEARCH_MODEL_UNAVAILABLE
    assert caught.value.details["folder"] == str(folder)


@pytest.mark.requirement("models.lazy")
def test_importing_the_parts_does_not_import_what_runs_a_model() -> None:
    code = (
        "import sys, client.models.embedder, client.models.reranker, client.models.background\n"
        "print(sorted({'fastembed', 'onnxruntime', 'onnx', 'tokenizers'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_tiny_weights_are_the_same_every_time() -> None:
    first, second = build_weights(), build_weights()
    assert isinstance(first, TinyWeights)
    assert first.data == second.data

from __future__ import annotations

from math import erf
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from client.models.e5_graph import write_onnx
from client.models.e5_weights import E5Weights, WeightsError
from tests.client.models.tiny_model import HEADS, HIDDEN, LAYERS, POSITIONS, TinyWeights, build_weights

Array = NDArray[np.float64]


def reference(tiny: TinyWeights, ids: NDArray[np.int64]) -> Array:
    """The encoder of one unpadded text, computed plainly."""
    t = {name: values.astype(np.float64) for name, values in tiny.tensors.items()}

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt(centred.var(-1, keepdims=True) + 1e-12) * t[name + "w"] + t[name + "b"]

    def linear(x: Array, name: str) -> Array:
        return x @ t[name + ".w"].T + t[name + ".b"]

    def heads(x: Array) -> Array:
        return x.reshape(len(ids), HEADS, HIDDEN // HEADS).transpose(1, 0, 2)

    x = t["emb.word"][ids] + t["emb.pos"].reshape(POSITIONS, HIDDEN)[: len(ids)] + t["emb.type"][:HIDDEN]
    x = norm(x, "emb.ln.")
    for layer in range(LAYERS):
        p = f"l{layer}."
        q, k, v = (heads(linear(x, p + n)) for n in ("q", "k", "v"))
        scores = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(HIDDEN // HEADS))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ v
        x = norm(x + linear(mixed.transpose(1, 0, 2).reshape(len(ids), HIDDEN), p + "ao"), p + "aln.")
        inner = linear(x, p + "fi")
        gelu = inner * 0.5 * (1 + np.vectorize(erf)(inner / np.sqrt(2)))
        x = norm(x + linear(gelu, p + "fo"), p + "oln.")
    return x


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> onnxruntime.InferenceSession:
    path = tmp_path_factory.mktemp("graph") / "model.onnx"
    write_onnx(E5Weights(build_weights().data), path)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def test_the_graph_computes_the_encoder(session: onnxruntime.InferenceSession) -> None:
    ids = np.array([0, 6, 4, 9, 12, 30, 17, 2])
    feed = {"input_ids": ids[None], "attention_mask": np.ones((1, len(ids)), np.int64)}
    (found,) = session.run(["last_hidden_state"], feed)
    assert np.allclose(found[0], reference(build_weights(), ids), atol=1e-4)


def test_padding_does_not_change_a_texts_outputs(session: onnxruntime.InferenceSession) -> None:
    ids = np.array([[0, 6, 4, 9, 2, 1, 1, 1], [0, 6, 4, 9, 12, 30, 17, 2]])
    (found,) = session.run(None, {"input_ids": ids, "attention_mask": (ids != 1).astype(np.int64)})
    assert np.allclose(found[0, :5], reference(build_weights(), ids[0, :5]), atol=1e-4)
    assert np.allclose(found[1], reference(build_weights(), ids[1]), atol=1e-4)


def test_the_same_weights_give_the_same_file(tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        write_onnx(E5Weights(build_weights().data), tmp_path / name)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_weights_without_a_layer_are_refused(tmp_path: Path) -> None:
    data = build_weights().data.replace(b"l1.fo.w", b"l9.fo.w")
    with pytest.raises(WeightsError, match=r"l1\.fo\.w"):
        write_onnx(E5Weights(data), tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()

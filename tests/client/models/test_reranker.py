from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from client.domain.ranking import LATE_INTERACTION, PairReranker, maxsim
from client.models.projection import quantise_tokens, unit_rows
from client.models.reranker import CrossEncoderReranker
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.models.tiny_model import PIECES, tokenizer_json


def cross_encoder_folder(folder: Path, outputs: str = "one") -> Path:
    """A cross-encoder that adds one number a token: 10 for "x", 1 for "y", 0 for others."""
    worth = np.zeros((len(PIECES), 2 if outputs == "two classes" else 1), np.float32)
    worth[PIECES.index("x")], worth[PIECES.index("y")] = 10, 1
    nodes = [
        helper.make_node("Gather", ["worth", "input_ids"], ["each"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["each", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "axis"], ["sum"], keepdims=0),
        helper.make_node("Identity", ["sum"], ["logits"])
        if outputs != "no column"
        else helper.make_node("Squeeze", ["sum", "axis"], ["logits"]),
    ]
    shape: list[str | int] = {"one": ["b", 1], "two classes": ["b", 2], "no column": ["b"]}[outputs]
    graph = helper.make_graph(
        nodes,
        "pairs",
        [
            helper.make_tensor_value_info(n, TensorProto.INT64, ["b", "s"])
            for n in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)],
        [
            numpy_helper.from_array(worth, "worth"),
            numpy_helper.from_array(np.array([-1], np.int64), "last"),
            numpy_helper.from_array(np.array([1], np.int64), "axis"),
        ],
    )
    folder.mkdir(exist_ok=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))
    (folder / "tokenizer.json").write_bytes(tokenizer_json())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"model_max_length": 32, "pad_token": "<pad>"}), encoding="utf-8"
    )
    return folder


@pytest.mark.requirement("models.cross-encoder")
def test_a_cross_encoder_scores_each_pair_in_the_order_given(tmp_path: Path) -> None:
    reranker: PairReranker = CrossEncoderReranker("tiny-pairs", cross_encoder_folder(tmp_path / "ce"))
    passages = ["aaa", "x", "yy", "xy", "", *["y"] * 10]
    assert reranker.score("x", passages) == [10, 20, 12, 21, 10, *[11] * 10]
    assert reranker.score("x", []) == []


@pytest.mark.requirement("models.cross-encoder")
def test_the_two_rerankers_are_never_named_the_other(tmp_path: Path) -> None:
    name = CrossEncoderReranker(LATE_INTERACTION, tmp_path).name
    assert name.startswith("cross_encoder:")
    assert name != LATE_INTERACTION


@pytest.mark.requirement("models.cross-encoder")
@pytest.mark.parametrize("outputs", ["two classes", "no column"])
def test_a_model_without_one_score_a_pair_is_refused(tmp_path: Path, outputs: str) -> None:
    folder = cross_encoder_folder(tmp_path / "ce", outputs)
    reranker = CrossEncoderReranker(f"tiny-{outputs}", folder)
    with pytest.raises(InterleafError, match="not a cross-encoder") as caught:
        reranker.score("a", ["b"])
    assert caught.value.code is ErrorCode.SEARCH_MODEL_UNAVAILABLE


def test_a_folder_that_holds_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InterleafError, match="cannot be loaded"):
        CrossEncoderReranker("nothing", tmp_path).score("a", ["b"])


def test_a_cross_encoder_that_was_unloaded_loads_again(tmp_path: Path) -> None:
    reranker = CrossEncoderReranker("tiny-again", cross_encoder_folder(tmp_path / "ce"))
    first = reranker.score("x", ["y"])
    reranker.unload()
    assert reranker.score("x", ["y"]) == first


@pytest.mark.requirement("models.late-interaction")
def test_maxsim_is_the_mean_of_each_query_tokens_best_cosine() -> None:
    chance = np.random.default_rng(3)
    query = unit_rows(chance.standard_normal((6, 128)).astype(np.float32))
    passages = [unit_rows(chance.standard_normal((size, 128)).astype(np.float32)) for size in (1, 40, 185, 7)]
    stored = [quantise_tokens(passage) for passage in passages]
    scores = maxsim(query, [tokens for tokens, _ in stored], [scales for _, scales in stored])
    expected = [(query @ passage.T).max(axis=1).mean() for passage in passages]
    assert scores.dtype == np.float32
    assert np.allclose(scores, expected, atol=5e-3)


@pytest.mark.requirement("models.late-interaction")
def test_passages_and_queries_without_tokens_score_zero() -> None:
    query = unit_rows(np.ones((2, 8), np.float32))
    full = quantise_tokens(query)
    none = quantise_tokens(np.zeros((0, 8), np.float32))
    scores = maxsim(query, [none[0], full[0], none[0]], [none[1], full[1], none[1]])
    assert np.allclose(scores, [0, 1, 0], atol=0.01)
    assert maxsim(query[:0], [full[0]], [full[1]]).tolist() == [0]
    assert maxsim(query, [], []).shape == (0,)

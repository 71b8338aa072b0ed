from __future__ import annotations

import numpy as np

from tests.fakes.hashing_embedder import HashingEmbedder


def test_texts_that_share_words_are_nearer_than_texts_that_do_not() -> None:
    embedder = HashingEmbedder()
    query = embedder.embed_query("how to release the daemon")
    near, far = embedder.embed_passages(["Releasing daemons", "数据库备份"])
    assert query.pooled @ near.pooled > query.pooled @ far.pooled + 0.3


def test_chinese_texts_are_compared_by_pairs_of_characters() -> None:
    embedder = HashingEmbedder()
    query = embedder.embed_query("数据库备份")
    near, far = embedder.embed_passages(["如何做数据库的备份", "发布流程说明"])
    assert query.pooled @ near.pooled > query.pooled @ far.pooled + 0.3


def test_vectors_have_the_promised_shapes_and_lengths() -> None:
    embedder = HashingEmbedder(dimensions=64, token_dimensions=32)
    empty, full = embedder.embed_passages(["", "three plain words"])
    assert empty.tokens.shape == (0, 32)
    assert empty.scales.shape == (0,)
    assert full.tokens.shape == (3, 32)
    assert full.tokens.dtype == np.int8
    assert full.scales.dtype == np.float16
    for vectors in (empty, full):
        assert abs(float(np.linalg.norm(vectors.pooled)) - 1) < 1e-5
    assert embedder.count_tokens(["", "three plain words"]) == [0, 3]


def test_the_same_text_has_the_same_vectors_in_every_instance() -> None:
    first, second = HashingEmbedder(), HashingEmbedder()
    assert np.array_equal(first.embed_query("a b").pooled, second.embed_query("a b").pooled)

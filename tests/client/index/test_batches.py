"""Passages are embedded in batches of one length, and every unit gets its own vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from client.domain.chunking import passage_of
from client.domain.embedding import PassageVectors
from client.index import builder as builder_module
from tests.client.index.conftest import PROJECT, World, memory_of, resource
from tests.fakes.hashing_embedder import HashingEmbedder, words

WINDOW = 64


class Recording(HashingEmbedder):
    """Keeps what it was asked to embed, a batch at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []

    def embed_passages(self, texts: Sequence[str]) -> list[PassageVectors]:
        self.batches.append(list(texts))
        return super().embed_passages(texts)


def padded(batches: Sequence[Sequence[str]]) -> int:
    """Return how many tokens a model computes when every batch is padded to its longest passage."""
    return sum(len(batch) * max(len(words(text)) for text in batch) for batch in batches)


@pytest.mark.requirement("retrieval.index.batches")
def test_batches_are_of_one_length_and_every_unit_gets_its_own_vectors(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builder_module, "_CACHE_BATCH", WINDOW)
    chance = np.random.default_rng(7)
    # Chinese characters and English words: a character is no measure of a token.
    kinds = (lambda n: f"word{n} " * n, lambda n: "数据库迁移" * (n // 5 + 1))
    documents = [
        resource(f"mem_{n:03d}", f"n/{n}.md", kinds[n % 2](int(chance.integers(1, 150)))) for n in range(150)
    ]
    same = [resource("mem_x", "same.md", "an equal text"), resource("mem_y", "same.md", "an equal text")]
    embedder = Recording()
    world.embedder = embedder
    world.index(memory_of(*documents, *same))

    memory = world.memories[PROJECT]
    with world.manager.pin(PROJECT) as generation:
        assert generation is not None
        assert len(generation.units) == 152
        passages = []
        for number, indexed in enumerate(generation.units):
            passage = passage_of(indexed.as_unit(memory.by_id[generation.owners[number]]))
            (expected,) = HashingEmbedder().embed_passages([passage])
            stored = generation.vectors.unit(number)
            assert np.array_equal(stored.pooled, expected.pooled), passage
            assert np.array_equal(stored.tokens, expected.tokens), passage
            passages.append(passage)

    made = [text for batch in embedder.batches for text in batch]
    assert sorted(made) == sorted(set(passages)), "each passage once"
    for start in range(0, 150, WINDOW):
        window = [len(words(text)) for text in made[start : start + WINDOW]]
        assert all(after >= before for before, after in pairwise(window))
    unique = list(dict.fromkeys(passages))
    in_document_order = [unique[start : start + 8] for start in range(0, len(unique), 8)]
    assert padded(embedder.batches) < 0.75 * padded(in_document_order)

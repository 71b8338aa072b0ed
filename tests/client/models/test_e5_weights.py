from __future__ import annotations

import numpy as np
import pytest

from client.models.e5_weights import E5Weights, WeightsError
from tests.client.models.tiny_model import HIDDEN, PIECES, build_weights


def test_the_header_and_the_tensors_are_read_as_they_were_written() -> None:
    tiny = build_weights()
    weights = E5Weights(tiny.data)
    assert (weights.shape.hidden, weights.shape.layers, weights.shape.vocabulary) == (HIDDEN, 2, len(PIECES))
    assert np.array_equal(weights.vector("emb.ln.w"), tiny.tensors["emb.ln.w"])
    dense = weights.matrix("emb.word", len(PIECES), HIDDEN).dense()
    assert np.array_equal(dense, tiny.tensors["emb.word"])


def test_packed_nibbles_hold_neighbouring_columns() -> None:
    table = E5Weights(build_weights().data).matrix("emb.word", len(PIECES), HIDDEN)
    packed, flat = table.packed(), table.nibbles.reshape(len(PIECES), HIDDEN)
    assert np.array_equal(packed & 15, flat[:, 0::2])
    assert np.array_equal(packed >> 4, flat[:, 1::2])


@pytest.mark.parametrize("length", [0, 3, 20, 44, 60, 200, 900])
def test_a_file_that_ends_too_early_is_refused(length: int) -> None:
    with pytest.raises(WeightsError):
        E5Weights(build_weights().data[:length])


@pytest.mark.parametrize(
    ("offset", "value"), [(0, b"E5S2"), (8, b"\x00\x00\x00\x00"), (40, b"\x10\x00\x00\x00")]
)
def test_a_header_that_does_not_fit_is_refused(offset: int, value: bytes) -> None:
    data = bytearray(build_weights().data)
    data[offset : offset + len(value)] = value
    with pytest.raises(WeightsError):
        E5Weights(bytes(data))


def test_an_unknown_tensor_and_a_wrong_size_are_refused() -> None:
    weights = E5Weights(build_weights().data)
    with pytest.raises(WeightsError, match="missing"):
        weights.vector("emb.nothing")
    with pytest.raises(WeightsError, match="4-bit matrix"):
        weights.matrix("emb.word", len(PIECES) + 1, HIDDEN)

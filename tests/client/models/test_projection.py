from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.models.catalog import MULTILINGUAL_E5_SMALL
from client.models.projection import SHIPPED_PROJECTION, TokenProjection, quantise_tokens, unit_rows
from shared_schema.errors import ErrorCode, InterleafError
from tools.fit_projection import fit


@pytest.mark.requirement("models.fingerprint")
def test_the_shipped_projection_belongs_to_the_default_model() -> None:
    projection = TokenProjection.load(SHIPPED_PROJECTION, MULTILINGUAL_E5_SMALL.fingerprint)
    assert projection.mean.shape == (384,)
    assert projection.dimensions == 128
    gram = projection.components.T @ projection.components
    assert np.allclose(gram, np.eye(128), atol=2e-3)


@pytest.mark.requirement("models.fingerprint")
def test_a_projection_of_another_model_is_refused() -> None:
    with pytest.raises(InterleafError, match="another model") as caught:
        TokenProjection.load(SHIPPED_PROJECTION, "f" * 64)
    assert caught.value.code is ErrorCode.SEARCH_MODEL_UNAVAILABLE


@pytest.mark.parametrize("content", [b"", b"no archive", SHIPPED_PROJECTION.read_bytes()[:500]])
def test_a_damaged_projection_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "p.npz"
    path.write_bytes(content)
    with pytest.raises(InterleafError, match="cannot be read"):
        TokenProjection.load(path, MULTILINGUAL_E5_SMALL.fingerprint)


def test_a_projection_whose_arrays_do_not_fit_is_refused(tmp_path: Path) -> None:
    TokenProjection.save(tmp_path / "p.npz", np.zeros(8, np.float32), np.zeros((9, 4), np.float32), "model")
    with pytest.raises(InterleafError, match="shapes"):
        TokenProjection.load(tmp_path / "p.npz", "model")


@given(st.integers(0, 2**32 - 1), st.integers(0, 20), st.sampled_from([1, 8, 128]))
def test_stored_tokens_are_within_half_a_step_of_the_vectors(seed: int, rows: int, width: int) -> None:
    vectors = unit_rows(np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32))
    tokens, scales = quantise_tokens(vectors)
    assert (tokens.dtype, tokens.shape, scales.shape) == (np.int8, (rows, width), (rows,))
    back = tokens.astype(np.float32) * scales.astype(np.float32)[:, None]
    # Half a step, and what the float16 scale cuts off the largest entry.
    assert np.all(np.abs(back - vectors) <= 0.501 * scales.astype(np.float32)[:, None] + 1e-3)


def test_a_zero_vector_is_stored_as_zeros() -> None:
    tokens, scales = quantise_tokens(np.zeros((2, 8), np.float32))
    assert not tokens.any()
    assert np.all(scales > 0)


def test_fitting_finds_the_mean_and_the_directions_that_vary() -> None:
    chance = np.random.default_rng(5)
    directions = np.linalg.qr(chance.standard_normal((16, 3)))[0]
    offset = np.arange(16, dtype=np.float32)
    tokens = (chance.standard_normal((4000, 3)) @ directions.T + offset).astype(np.float32)
    mean, components, share = fit([tokens], 3)
    assert np.allclose(mean, offset, atol=0.1)
    assert share > 0.999
    assert np.allclose(components @ components.T @ directions, directions, atol=1e-2)
    again = fit([tokens], 3)[1]
    assert np.array_equal(components, again)


def test_a_small_group_has_as_much_say_as_a_large_one() -> None:
    chance = np.random.default_rng(6)
    large, small = np.zeros((2000, 8), np.float32), np.zeros((20, 8), np.float32)
    large[:, :2] = chance.standard_normal((2000, 2))
    small[:, 2] = np.tile([1, -1], 10)
    components = fit([large, small], 1)[1]
    assert abs(components[2, 0]) > 0.99

"""The repository's own set, through the real pipeline with the real model, against stored figures."""

from __future__ import annotations

import pytest

from client.models.embedder import OnnxEmbedder
from client.models.files import ModelFiles
from client.services.evaluation.run_set import SetResult
from client.services.evaluation.variants import VARIANTS
from tests.retrieval import gate
from tests.retrieval.figures import Figures, run

# Embedding the set takes half a minute of one processor, longer where others use it.
pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def stored() -> Figures:
    return Figures.read()


@pytest.fixture(scope="module")
def result(prepared_model: ModelFiles) -> SetResult:
    return run(OnnxEmbedder(prepared_model))


def said(problems: list[str]) -> str:
    return "\n".join([*problems, "", "Wanted? python -m tests.retrieval.store_figures"]) if problems else ""


@pytest.mark.requirement("retrieval.gate.ndcg")
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_ranking_got_worse(stored: Figures, result: SetResult, variant: str) -> None:
    assert not (text := said(gate.fell(stored, result, variant))), text


@pytest.mark.requirement("retrieval.gate.best")
def test_the_whole_ranking_is_not_below_the_lists_it_is_made_of(result: SetResult) -> None:
    assert not (text := "\n".join(gate.below_best(result))), text


@pytest.mark.requirement("retrieval.gate.answers")
def test_right_documents_stay_in_the_answers(stored: Figures, result: SetResult) -> None:
    assert not (text := said(gate.lost_answers(stored, result))), text


@pytest.mark.requirement("retrieval.gate.forbidden")
def test_no_more_forbidden_documents_are_returned(stored: Figures, result: SetResult) -> None:
    assert not (text := said(gate.forbidden(stored, result))), text

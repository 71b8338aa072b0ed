"""Versions of cases: kept, compared before they are made, and none lost between two judges."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.evaluation_contract import CaseJudgeCall, GradedTarget
from tests.client.services.evaluation.case_world import DOCUMENTS, CaseWorld, refused


@pytest.mark.requirement("eval.case.versions")
def test_every_change_is_a_version_and_former_ones_are_kept(world: CaseWorld) -> None:
    case = world.case(note="as it was")
    world.judge(case, "tea.md=1", forbid=["guides/old-release.md"])
    world.judge(case, "guides/release.md=3", note="better")
    same = world.judge(case, "guides/release.md=3")
    assert same.case.version == 3, "what was said before makes no version"
    found = world.judge(case, none_matched=True)
    assert [
        (each.version, each.kind, len(each.evidence), len(each.forbidden)) for each in found.versions
    ] == [
        (4, "none_matched", 0, 1),
        (3, "graded", 2, 1),
        (2, "graded", 1, 1),
        (1, "unjudged", 0, 0),
    ]
    assert [each.note for each in found.versions] == ["better", "better", "as it was", "as it was"]
    assert found.versions[0].forbidden[0].path == "guides/old-release.md"
    times = [each.created_at for each in found.versions]
    assert times == sorted(times, reverse=True)


@pytest.mark.requirement("eval.case.versions")
def test_another_version_than_the_expected_one_is_left_alone(world: CaseWorld) -> None:
    case = world.case()
    world.judge(case, "tea.md=1", expect_version=1)
    late = refused(ErrorCode.VERSION_CONFLICT, lambda: world.judge(case, "tea.md=3", expect_version=1))
    assert late.details == {"case_id": case, "version": 2}
    refused(ErrorCode.VERSION_CONFLICT, lambda: world.delete(case, expect_version=1))
    refused(ErrorCode.VERSION_CONFLICT, lambda: world.freeze(case, world.run(), expect_version=1))
    assert world.show(case).versions[0].evidence[0].grade == 1
    world.delete(case, expect_version=2)


def at_once(*calls: Callable[[], Any]) -> list[InterleafError | None]:
    """Call all at the same moment, each in a thread; return what each raised."""
    barrier = threading.Barrier(len(calls))
    outcomes: list[InterleafError | None] = [None] * len(calls)

    def one(number: int) -> None:
        barrier.wait()
        try:
            calls[number]()
        except InterleafError as error:
            outcomes[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.requirement("eval.case.versions")
def test_of_many_judges_with_one_expectation_exactly_one_wins(world: CaseWorld) -> None:
    case = world.case()
    calls = [
        CaseJudgeCall(case_id=case, evidence=[GradedTarget(target=path, grade=2)], expect_version=1)
        for path in ("tea.md", "guides/release.md", "org/keys.md", "zh/发布流程.md") * 2
    ]
    outcomes = at_once(*(lambda call=call: world.cases.judge(call) for call in calls))
    lost = [error for error in outcomes if error is not None]
    assert {error.code for error in lost} == {ErrorCode.VERSION_CONFLICT}
    assert len(lost) == len(calls) - 1
    found = world.show(case)
    assert found.case.version == 2
    winner = calls[outcomes.index(None)].evidence[0].target
    assert [each.path for each in found.versions[0].evidence] == [winner]


@pytest.mark.requirement("eval.case.versions")
def test_judges_without_an_expectation_lose_nothing(world: CaseWorld) -> None:
    case = world.case()
    paths = [document.path for document in DOCUMENTS]
    outcomes = at_once(*(lambda path=path: world.judge(case, f"{path}=2") for path in paths))
    assert outcomes == [None] * len(paths)
    found = world.show(case)
    assert found.case.version == 1 + len(paths)
    assert sorted(str(each.path) for each in found.versions[0].evidence) == sorted(paths)
    assert sorted(len(each.evidence) for each in found.versions) == list(range(1 + len(paths)))

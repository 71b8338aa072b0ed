"""Replaying cases over their frozen corpora, with the real index and searcher."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from client.domain.chunking import text_hash
from client.domain.embedding import Embedder
from client.index.searcher import Searcher, Snapshot
from client.index.trace import Trace
from client.services.evaluation.replay import ReplayCases
from client.services.run_log import trace_record
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.local_world import PROJECT, published
from tests.client.services.evaluation.case_world import DOCUMENTS, QUERY, CaseWorld

CHINESE = "发布之前检查什么合同"


class Watched(Searcher):
    """Lets a test see every search, and put another one in its place."""

    def __init__(self, world: CaseWorld, changed: Callable[[Trace], Trace] = lambda trace: trace) -> None:
        super().__init__(world.cache)
        self.changed = changed
        self.traces: list[Trace] = []

    def search(self, snapshot: Snapshot, query: str, embedder: Embedder) -> Trace:
        trace = self.changed(super().search(snapshot, query, embedder))
        self.traces.append(trace)
        return trace


def with_searcher(world: CaseWorld, searcher: Searcher) -> CaseWorld:
    models: Any = world.replay._models
    world.replay = ReplayCases(world.store, models, world.cache, lambda: searcher, world.home / "replay")
    return world


def recorded(world: CaseWorld, run_id: str) -> dict[str, Any]:
    with world.store.read() as uow:
        run = uow.runs.get(run_id)
    assert run is not None
    return dict(run.trace)


@pytest.mark.requirement("eval.replay.exact")
def test_a_case_is_replayed_exactly_whatever_changed_since(world: CaseWorld) -> None:
    mine = world.create("notes/mine.md", "# Mine\n\nMy own rocket is tagged twice.\n")
    world.manager.rebuild(PROJECT)
    world.build()
    runs = {}
    for query in (QUERY, CHINESE):
        case = world.judged(query, "guides/release.md=3")
        runs[query] = recorded(world, world.show(case).case.run_id)
    world.discard(mine.resource_id)
    world.change(
        published("mem_rel", "elsewhere.md", "# Other\n\nAll is new.\n"), published("mem_new", "n.md")
    )

    searcher = Watched(world)
    with_searcher(world, searcher).replayed()

    for trace in searcher.traces[1:]:
        again = trace_record(trace)
        first = next(run for run in runs.values() if run["query_terms"] == list(trace.query_terms))
        for volatile in ("latencies_ms", "generation"):
            del again[volatile]
            first.pop(volatile, None)
        assert again == first, "every candidate with its ranks, scores and reason"
    assert len(searcher.traces) == 3, "once to warm, then each case once"


@pytest.mark.requirement("eval.replay.exact")
def test_two_replays_differ_in_nothing_but_time(world: CaseWorld) -> None:
    world.judged(QUERY, "guides/release.md#Tag=3", forbid=["guides/old-release.md"])
    world.change(*DOCUMENTS[2:])
    world.judged(QUERY, none_matched=True)
    world.judged(CHINESE, "zh/发布流程.md=3")
    first, second = world.report(), world.report()
    for report in (first, second):
        del report["latency_ms"]
        for case in report["by_case"]:
            del case["ms"]
    assert first == second
    assert first["corpora"] == 2


@pytest.mark.requirement("eval.replay.vectors")
def test_vectors_come_from_the_shared_cache_and_nothing_is_left_on_disk(world: CaseWorld) -> None:
    world.judged(QUERY, "guides/release.md=3")
    before, files = dict(world.embedder.calls), set(world.home.rglob("*"))  # type: ignore[attr-defined]
    told: list[tuple[str, int, int]] = []
    world.replayed(lambda *step: told.append(step))
    assert world.embedder.calls["passages"] == before["passages"]  # type: ignore[attr-defined]
    assert set(world.home.rglob("*")) == files
    assert told[0][0] == "indexing"
    assert told[-1] == ("searching", 1, 1)


@pytest.mark.requirement("eval.replay.vectors")
def test_what_an_interrupted_replay_left_is_deleted(world: CaseWorld) -> None:
    left = world.home / "index" / "replay" / "index" / "units.jsonl"
    left.parent.mkdir(parents=True)
    left.touch()
    world.reports.tidy()
    assert not left.parent.parent.exists()
    world.judged(QUERY, "guides/release.md=3")

    def interrupted(stage: str, _done: int, _total: int) -> None:
        if stage == "searching":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.replayed(interrupted)
    assert not left.parent.parent.exists()


@pytest.mark.requirement("eval.report.measures")
def test_the_report_tells_of_every_kind_of_case(world: CaseWorld) -> None:
    graded = world.judged(QUERY, "guides/release.md#Tag=3", forbid=["guides/old-release.md"])
    missed = world.judged("hot water for tea", "zh/发布流程.md=3")
    empty = world.judged("quantum entanglement", none_matched=True)
    full = world.judged("where the signing key lies", none_matched=True)
    waiting = world.case("anything")
    report = world.report()
    assert (report["cases"], report["judged"], report["graded"], report["none_matched"]) == (5, 4, 2, 2)
    assert report["unjudged"] == [waiting]
    assert list(report["variants"]) == ["b1_bm25", "b2_dense", "b3_fused", "b4_reranked"]
    assert list(report["references"]) == ["rrf"]
    for ranking in (*report["variants"].values(), *report["references"].values()):
        assert ranking.keys() == {
            "recall@20", "ndcg@10", "mrr@10", "diversity@10",
            "scope_violations", "stale_results", "forbidden_hits",
        }  # fmt: skip
        assert 0 < ranking["ndcg@10"] <= 1
        assert (ranking["scope_violations"], ranking["stale_results"]) == (0, 0)
        assert ranking["forbidden_hits"] == 1, "the old release shares the question's words"
    assert set(report["differences"]) == {"b1_bm25", "b2_dense", "b3_fused", "rrf"}
    answers = report["answers"]
    assert answers["none_matched_left_empty"] == {"empty": 1, "of": 2}
    assert answers["with_evidence"] == answers["evidence_returned"] == 0.5
    assert 0 < report["latency_ms"]["p50"] <= report["latency_ms"]["p95"]
    cases = {case["case_id"]: case for case in report["by_case"]}
    assert list(cases) == [graded, missed, empty, full]
    assert set(cases[graded]["best"][:2]) == {"mem_rel/release/tag/0/0", "mem_old"}
    assert cases[missed]["answer"]["evidence_returned"] == 0
    assert cases[full]["answer"]["fragments"] > 0 == cases[empty]["answer"]["fragments"]
    assert cases[graded]["version"] == 2


@pytest.mark.requirement("eval.report.measures")
def test_evidence_for_one_section_is_not_found_by_another(world: CaseWorld) -> None:
    world.judged("tag the commit of the rocket", "guides/release.md#Sign=3")
    world.judged("tag the commit of the rocket", "guides/release.md#Tag=3")
    sign, tag = world.report()["by_case"]
    assert sign["rankings"]["b4_reranked"]["mrr@10"] < tag["rankings"]["b4_reranked"]["mrr@10"]


@pytest.mark.requirement("eval.report.faults")
@pytest.mark.parametrize(
    ("fault", "change"),
    [
        ("scope_violations", {"resource_id": "mem_foreign", "unit_key": "mem_foreign/a/0/0"}),
        ("stale_results", {"text": "as it was last year", "content_hash": text_hash("as it was last year")}),
        ("stale_results", {"text": "not what the hash says"}),
        ("forbidden_hits", {"resource_id": "mem_old", "chars": (15, 38), "text": "Tag the rocket by tape."}),
    ],
)
def test_what_a_broken_search_returns_is_told(world: CaseWorld, fault: str, change: dict[str, Any]) -> None:
    def broken(trace: Trace) -> Trace:
        return replace(trace, units=(replace(trace.units[0], **change), *trace.units[1:]))

    case = world.judged("hot water", "tea.md=3", forbid=["guides/old-release.md"])
    sound = world.report()["by_case"][0]["answer"]
    assert {sound["scope_violations"], sound["stale_results"], sound["forbidden_hits"]} == {0}
    found = with_searcher(world, Watched(world, broken)).report()
    assert found["by_case"][0]["case_id"] == case
    assert found["by_case"][0]["answer"][fault] == found["answers"][fault] == 1


@pytest.mark.requirement("eval.report.measures")
def test_a_graded_part_that_is_cut_otherwise_now_is_told(world: CaseWorld) -> None:
    case = world.judged(QUERY, "guides/release.md#Tag=3")
    with world.store.write() as uow:
        uow.connection.execute(
            text("UPDATE evaluation_version SET judgment = replace(judgment, 'tag', 'gone')")
        )
    found = world.report()["by_case"][0]
    assert found["case_id"] == case
    assert found["lost_units"] == ["mem_rel/release/gone/0/0"]


@pytest.mark.requirement("eval.case.frozen")
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE evaluation_body SET body = body || ' ' WHERE body LIKE '%Hot water%'",
        "UPDATE evaluation_document SET title = 'Coffee' WHERE resource_id = 'mem_tea'",
        "DELETE FROM evaluation_member WHERE document = 1",
    ],
)
def test_a_corpus_that_is_not_what_was_frozen_is_never_replayed(world: CaseWorld, damage: str) -> None:
    world.judged(QUERY, "guides/release.md=3")
    with world.store.write() as uow:
        uow.connection.execute(text(damage))
    with pytest.raises(InterleafError) as refused:
        world.replayed()
    assert refused.value.code is ErrorCode.DATABASE_CORRUPT
    assert "interleaf eval case freeze" in refused.value.message


def test_nothing_is_asked_where_nothing_is_judged(world: CaseWorld) -> None:
    world.case()
    world.embedder = None  # type: ignore[assignment]  # whoever asks for a model fails
    report = world.report()
    assert (report["cases"], report["judged"], report["answers"]) == (1, 0, None)

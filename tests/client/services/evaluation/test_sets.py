from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from client.index.vector_cache import VectorCache
from client.services.evaluation.plot_sets import check_plot, plot_sets
from client.services.evaluation.report_set import latencies, report_of
from client.services.evaluation.run_set import SharedOut, run_set
from client.services.evaluation.sets import EvaluationSet, read_set
from shared_schema.errors import ErrorCode, InterleafError
from tests.fakes.hashing_embedder import HashingEmbedder

DOCUMENTS = [
    {
        "id": "deploy",
        "path": "ops/deploy.md",
        "title": "Deploy",
        "text": "# Deploy\n\nTag, build, ship the rocket.",
    },
    {
        "id": "backup",
        "path": "ops/backup.md",
        "text": "# Backups\n\nEvery night the database is copied away.",
    },
    {"id": "old", "path": "ops/old.md", "text": "# Old backups\n\nBackups by tape, given up long ago."},
    {"id": "发布", "text": "# 发布流程\n\n发布之前请先检查合同编号。"},
]
QUERIES = [
    {"id": "q1", "text": "how is the rocket shipped"},
    {"id": "q2", "text": "when is the database copied"},
    {"id": "q3", "text": "发布之前检查什么"},
    {"id": "q4", "text": "tape backups"},
    {"id": "unjudged", "text": "anything"},
]
JUDGMENTS = "q1\tdeploy\t2\nq2\tbackup\t1\nq2\told\t-1\nq3\t发布\t1\nq4\told\t-1\n"

Writer = Callable[..., Path]


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.fixture
def written(tmp_path: Path) -> Writer:
    def write(corpus: str = "", queries: str = "", judgments: str = "") -> Path:
        folder = tmp_path / "my set"
        folder.mkdir()
        (folder / "corpus.jsonl").write_bytes((corpus or _lines(DOCUMENTS)).encode())
        (folder / "queries.jsonl").write_bytes((queries or _lines(QUERIES)).encode())
        (folder / "qrels.tsv").write_bytes((judgments or JUDGMENTS).encode())
        return folder

    return write


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[VectorCache]:
    found = VectorCache(tmp_path / "vectors.db", now=lambda: 1_000)
    yield found
    found.close()


@pytest.mark.requirement("retrieval.eval.sets")
def test_a_set_is_read_with_defaults_and_without_unjudged_queries(written: Writer) -> None:
    found = read_set(written())
    assert found.name == "my set"
    assert [each.document_id for each in found.documents] == ["deploy", "backup", "old", "发布"]
    assert [each.title for each in found.documents] == ["Deploy", "Backups", "Old backups", "发布流程"]
    assert found.documents[3].path == "发布.md"
    assert list(found.queries) == ["q1", "q2", "q3", "q4"]
    assert found.judgments["q2"] == {"backup": 1, "old": -1}


@pytest.mark.requirement("retrieval.eval.sets")
@pytest.mark.parametrize(
    ("part", "content", "expected"),
    [
        ("corpus", "{", "corpus.jsonl, line 1: not JSON"),
        ("corpus", "[" * 100_000, "line 1: not JSON"),
        ("corpus", "\n[]", "line 2: expected a JSON object"),
        ("corpus", '{"id": "a"}', "line 1: 'text' has to be text"),
        ("corpus", '{"id": 7, "text": ""}', "'id' has to be text"),
        ("corpus", '{"id": "", "text": ""}', "'id' has to be text"),
        ("corpus", '{"id":"a","text":""}\n{"id":"a","text":""}', "line 2: the id 'a' occurs twice"),
        ("queries", '{"id":"q"}', "queries.jsonl, line 1: 'text'"),
        ("judgments", "q1 deploy 2", "qrels.tsv, line 1: expected query id, document id"),
        ("judgments", "q1\tdeploy\tgood", "line 1: expected"),
        ("judgments", "q9\tdeploy\t1", "there is no query 'q9'"),
        ("judgments", "q1\tnothing\t1", "there is no document 'nothing'"),
        ("judgments", "\n", "no query with a judgment"),
    ],
)
def test_a_broken_set_is_refused_with_file_and_line(
    written: Writer, part: str, content: str, expected: str
) -> None:
    folder = written(**{part: content})
    with pytest.raises(InterleafError) as caught:
        read_set(folder)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS
    assert expected in caught.value.message


@pytest.mark.requirement("retrieval.eval.sets")
def test_other_text_files_of_a_tired_person(written: Writer, tmp_path: Path) -> None:
    folder = written("\ufeff" + _lines(DOCUMENTS), _lines(QUERIES).replace("\n", "\r\n"), JUDGMENTS)
    assert len(read_set(folder).documents) == 4
    (folder / "qrels.tsv").write_bytes(b"\xff\xfe")
    with pytest.raises(InterleafError, match="not UTF-8"):
        read_set(folder)
    with pytest.raises(InterleafError, match="A set is a folder with"):
        read_set(tmp_path / "nothing here")


@pytest.mark.requirement("retrieval.eval.sets")
def test_a_sample_is_the_same_every_time_and_keeps_what_is_judged(written: Writer) -> None:
    whole = read_set(written())
    small = whole.sample(2, 1)
    assert small == whole.sample(2, 1)
    assert len(small.queries) == 2
    judged = {document for query in small.queries for document in small.judgments[query]}
    assert {each.document_id for each in small.documents} == judged
    assert whole.sample(None, None) == whole
    assert len(whole.sample(1, 4).documents) == 4


def _run(written: Writer, cache: VectorCache, tmp_path: Path, told: list[tuple[str, int, int]]) -> Any:
    evaluated = read_set(written())
    return run_set(evaluated, HashingEmbedder(), cache, tmp_path / "index", lambda *step: told.append(step))


@pytest.mark.requirement("retrieval.eval.run")
def test_a_set_goes_through_the_pipeline(written: Writer, cache: VectorCache, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    found = _run(written, cache, tmp_path, told)
    assert (found.documents, found.units, len(found.queries)) == (4, 4, 4)
    assert [query.query_id for query in found.answerable] == ["q1", "q2", "q3"]
    for query in found.answerable:
        for variant in ("b1_bm25", "b2_dense", "b3_fused", "b4_reranked", "rrf"):
            assert query.measures(variant).ndcg == pytest.approx(1.0), (query.query_id, variant)
        assert query.answered
    assert found.queries[3].forbidden_hits == ("old",)
    assert ("indexing", 4, 4) in told
    assert told[-1] == ("searching", 4, 4)


@pytest.mark.requirement("retrieval.eval.json")
def test_the_report_has_the_promised_names(written: Writer, cache: VectorCache, tmp_path: Path) -> None:
    report = json.loads(json.dumps(report_of(_run(written, cache, tmp_path, []), queries=True)))
    assert list(report["variants"]) == ["b1_bm25", "b2_dense", "b3_fused", "b4_reranked"]
    for measures in report["variants"].values():
        assert measures == {"recall@20": 1.0, "ndcg@10": 1.0, "mrr@10": 1.0}
    assert (report["queries"], report["documents"], report["units"]) == (4, 4, 4)
    assert 0 < report["latency_ms"]["p50"] <= report["latency_ms"]["p95"]
    assert report["references"]["rrf"]["ndcg@10"] == 1.0
    assert report["differences"]["b1_bm25"] == {"mean": 0, "low": 0, "high": 0, "wins": 0, "losses": 0}
    assert report["answers"]["with_a_right_document"] == 1.0
    assert report["answers"]["forbidden_hits"] >= 1
    assert [query["id"] for query in report["by_query"]] == ["q1", "q2", "q3", "q4"]
    assert "by_query" not in report_of(_run_again(written, cache, tmp_path))


def _run_again(written: Writer, cache: VectorCache, tmp_path: Path) -> Any:
    evaluated = read_set(tmp_path / "my set")
    return run_set(evaluated, HashingEmbedder(), cache, tmp_path / "again")


@pytest.mark.requirement("retrieval.eval.run")
def test_a_word_that_is_a_document_s_id_in_the_set_names_nothing(
    written: Writer, cache: VectorCache, tmp_path: Path
) -> None:
    evaluated = read_set(
        written(queries=_lines([{"id": "q1", "text": "old rocket, ship it"}])[:-1], judgments="q1\tdeploy\t1")
    )
    found = run_set(evaluated, HashingEmbedder(), cache, tmp_path / "index")
    assert found.queries[0].rankings["b4_reranked"][0] == "deploy"


@pytest.mark.requirement("retrieval.eval.run")
def test_nothing_is_embedded_twice(written: Writer, cache: VectorCache, tmp_path: Path) -> None:
    evaluated = read_set(written())
    first, second = HashingEmbedder(), HashingEmbedder()
    before = run_set(evaluated, first, cache, tmp_path / "one")
    after = run_set(evaluated, second, cache, tmp_path / "two")
    assert first.calls["passages"] == 4
    assert second.calls["passages"] == 0
    assert before.variants == after.variants


@pytest.mark.requirement("retrieval.eval.run")
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_shared_out_passages_keep_their_order(threads: int) -> None:
    texts = [f"passage {number}" for number in range(7)]
    alone = HashingEmbedder().embed_passages(texts)
    embedder = SharedOut(HashingEmbedder(), threads)
    together = embedder.embed_passages(texts)
    assert embedder.embed_passages([]) == []
    embedder.close()
    for one, other in zip(alone, together, strict=True):
        assert (one.pooled == other.pooled).all()


@pytest.mark.requirement("retrieval.eval.plot")
@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_a_plot_is_drawn_and_the_same_figures_give_the_same_file(tmp_path: Path, ending: str) -> None:
    report = {
        "set": "one <set> & $more$",
        "queries": 3,
        "documents": 4,
        "variants": {
            name: {"ndcg@10": value}
            for name, value in zip(
                ("b1_bm25", "b2_dense", "b3_fused", "b4_reranked"), (0, 0.4, 0.99, 0.996), strict=True
            )
        },
    }
    for name in ("first", "second"):
        plot_sets([report, report], tmp_path / f"{name}{ending}")
    first = (tmp_path / f"first{ending}").read_bytes()
    assert len(first) > 2_000
    assert first == (tmp_path / f"second{ending}").read_bytes()
    if ending == ".svg":
        drawn = first.decode()
        assert "nDCG@10" in drawn
        assert ">.99<" in drawn.replace(" ", "")
        # Rounded up it is a whole, not nothing.
        assert ">1.00<" in drawn.replace(" ", "")


@pytest.mark.requirement("retrieval.eval.plot")
def test_a_plot_of_another_kind_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(InterleafError, match=r"\.svg, \.png, \.pdf"):
        check_plot(tmp_path / "plot.docx")


def test_latencies_of_none_one_and_many() -> None:
    assert latencies([]) == {"p50": 0.0, "p95": 0.0}
    assert latencies([3.0]) == {"p50": 3.0, "p95": 3.0}
    assert latencies([float(each) for each in range(101)]) == {"p50": 50.0, "p95": 95.0}


def test_a_set_of_forbidden_documents_alone_has_no_shares(
    cache: VectorCache, tmp_path: Path, written: Writer
) -> None:
    whole = read_set(written())
    only = EvaluationSet("only", whole.documents, {"q4": "tape backups"}, {"q4": {"old": -1}})
    report = report_of(run_set(only, HashingEmbedder(), cache, tmp_path / "index"))
    assert report["answers"]["with_a_right_document"] is None
    assert report["differences"] == {}
    # It is returned, although nothing is right.
    assert report["answers"]["unanswerable_left_empty"] == {"empty": 0, "of": 1}

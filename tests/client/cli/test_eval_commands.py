from __future__ import annotations

import json
from pathlib import Path

import pytest

from client.cli.app import execute
from client.models.files import ModelFiles

DOCUMENTS = {
    "deploy": "# Deploy\n\nTag the commit, then build and ship the rocket with `make ship`.",
    "backup": "# Backups\n\nEvery night the database is copied to another region.",
    "leave": "# Holidays\n\nAsk your team two weeks ahead.",
}


@pytest.fixture
def folder(tmp_path: Path, prepared_model: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTERLEAF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("INTERLEAF_MODELS_DIR", str(prepared_model.folder.parent))
    found = tmp_path / "small"
    found.mkdir()
    rows = [{"id": key, "path": f"{key}.md", "title": "", "text": text} for key, text in DOCUMENTS.items()]
    (found / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    queries = [{"id": "q1", "text": "如何备份数据库"}, {"id": "q2", "text": "how do I get a day off"}]
    (found / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)), encoding="utf-8")
    (found / "qrels.tsv").write_text("q1\tbackup\t1\nq2\tleave\t2\n", encoding="utf-8")
    return found


@pytest.mark.models
@pytest.mark.requirement("retrieval.eval.json")
def test_a_set_is_measured_without_daemon_server_or_project(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = tmp_path / "plot.svg"
    assert execute(["eval", "run", str(folder), "--json", "--plot", str(plot)]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert err == ""
    assert set(report["variants"]) == {"b1_bm25", "b2_dense", "b3_fused", "b4_reranked"}
    assert report["variants"]["b4_reranked"] == {"recall@20": 1.0, "ndcg@10": 1.0, "mrr@10": 1.0}
    # Words alone cannot know: the questions share none with their documents.
    assert report["variants"]["b1_bm25"]["ndcg@10"] < 1.0
    assert (report["queries"], report["documents"]) == (2, 3)
    assert report["latency_ms"]["p50"] > 0
    assert plot.read_text(encoding="utf-8").startswith("<?xml")
    assert [path.name for path in (tmp_path / "home" / "index" / "evaluation").iterdir()] == ["vectors.db"]


@pytest.mark.models
@pytest.mark.requirement("retrieval.eval.run")
def test_several_sets_are_a_table_each_and_their_means(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["eval", "run", str(folder), str(folder), "--queries", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.count("small: 1 query, 3 documents, 3 units") == 2
    assert "Means of 2 sets" in out
    assert "small: indexing" in err
    assert all(len(line) <= 80 for line in out.splitlines()), out


@pytest.mark.requirement("retrieval.eval.plot")
def test_a_bad_plot_or_set_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["eval", "run", str(tmp_path), "--plot", "out.doc", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "invalid_arguments"
    assert execute(["eval", "run", str(tmp_path)]) == 1
    assert "corpus.jsonl cannot be read" in capsys.readouterr().err
    assert execute(["eval", "run"]) == 2

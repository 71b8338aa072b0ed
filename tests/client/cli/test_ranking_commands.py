"""``runs`` and ``explain`` as a person reads them, through a real daemon on a real socket."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from structlog.testing import capture_logs

from client.cli.app import execute
from client.wiring import Daemon
from shared_schema.tool_contract import Activate
from tests.client.daemon.real_daemon import WAIT_SECONDS, ReadyModels, bind, install, running, settings
from tests.client.local_world import PROJECT, published

LONG = "guides/" + "a-rather-long-folder-name/" * 4 + "one-more-document-about-zebras.md"
WIDE = "zh/发布流程/一个很长的文件名用来看看表格会不会太宽.md"
PARTS = "".join(f"## Part {n}\n\n{'zebra ' * 80}p{n}\n\n" for n in range(4))
DOCUMENTS = (
    published("mem_rel", "guides/release.md", "# Release\n\nTag the commit and sign the package.\n"),
    published("mem_tea", "tea.md", "# Tea\n\nHot water, three minutes.\n", description="How to make tea"),
    published("mem_zh", WIDE, "# 发布流程\n\n先检查合同编号。\n"),
    published("mem_long", LONG, f"# Zebras\n\n{PARTS}"),
    *(published(f"mem_{n:03d}", f"many/{n}.md", f"# N{n}\n\nzebra stripes number{n}\n") for n in range(60)),
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    home = tmp_path_factory.mktemp("home")
    checkout = home / "checkout"
    checkout.mkdir()
    # The daemon in this process would log to the standard output that is looked at here.
    with capture_logs(), running(settings(home / "interleaf"), ReadyModels()) as made:
        install(made, resources=DOCUMENTS)
        bind(made, checkout)
        deadline = time.monotonic() + WAIT_SECONDS
        while made.services.status.index(PROJECT).state != "ready":
            assert time.monotonic() < deadline, "the first index"
            made.index.run_once()
        yield made


@pytest.fixture
def said(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    home = daemon.settings.places.home
    monkeypatch.setenv("INTERLEAF_HOME", str(home))
    monkeypatch.chdir(home.parent / "checkout")

    def run(*arguments: str, status: int = 0) -> str:
        capsys.readouterr()
        assert execute(arguments) == status
        out, err = capsys.readouterr()
        return out if status == 0 else err

    return run


@pytest.fixture
def asked(daemon: Daemon) -> Callable[[str], str]:
    def ask(query: str) -> str:
        answer = daemon.services.activate(PROJECT, Activate(query=query))
        assert answer.run_id is not None
        return answer.run_id

    return ask


def too_wide(text: str) -> list[str]:
    return [line for line in text.splitlines() if cell_len(line) > 80]


Say = Callable[..., str]


@pytest.mark.requirement("runs.readable")
def test_a_run_reads_as_a_ranking(said: Say, asked: Say) -> None:
    asked("zebra stripes of the release xyzzy")
    shown = said("runs", "show")
    lines = shown.splitlines()
    assert "3 of 4 query terms occur in this memory, not: xyzzy" in shown
    assert "late interaction, on 24 of 6" in shown
    titles = [n for n, line in enumerate(lines) if line == "  words meaning fused  again  floor"]
    assert len(titles) == 2, "what was returned, and what was not"
    first, second = lines[titles[0] + 1], lines[titles[0] + 2]
    assert first.startswith("  1  ")
    assert ".md > " in first
    words, meaning, fused, again = second.split()[:4]
    assert {words, meaning, fused, again} <= {str(n) for n in range(1, 65)}
    assert "tokens" in second
    assert "the answer is full" in shown
    assert "more: interleaf runs show run_" in shown
    assert too_wide(shown) == []
    assert "\x1b" not in shown


@pytest.mark.requirement("runs.readable")
def test_twenty_candidates_are_shown_and_all_on_request(said: Say, asked: Say) -> None:
    run = asked("zebra stripes")
    few, every = said("runs", "show", run), said("runs", "show", run, "--all")
    names = [line for line in few.splitlines() if ".md" in line]
    assert len(names) == 20
    assert "not among the 24 looked at again" not in few
    assert "not among the 24 looked at again" in every
    assert "more: " not in every
    assert too_wide(every) == []


@pytest.mark.requirement("runs.readable")
@pytest.mark.parametrize(
    ("query", "seen"),
    [
        ("合同编号", "zh/发布流程/"),
        ("zebra zebra part", "one-more-document"),
        ("tea.md", "named in the query"),
        ("making tea", "tea.md (description)"),
        ("quantum entanglement", "Nothing was returned."),
        ("...", "no words to look for"),
        ("x" * 3_000, "Nothing was returned."),
    ],
)
def test_every_kind_of_run_fits_80_columns(said: Say, asked: Say, query: str, seen: str) -> None:
    shown = said("runs", "show", asked(query), "--all")
    assert seen in shown
    assert too_wide(shown) == []


@pytest.mark.requirement("runs.readable")
def test_a_drafts_text_is_flagged(said: Say, asked: Say, tmp_path: Path) -> None:
    body = tmp_path / "body.md"
    body.write_text("# Gnus\n\nFeed the gnu.\n", encoding="utf-8")
    said("draft", "create", "--path", "gnu.md", "--body-file", str(body))
    shown = said("runs", "show", asked("feed the gnu"))
    assert "unpublished change" in shown
    said("draft", "discard", "gnu.md")


@pytest.mark.requirement("runs.readable")
def test_a_question_in_another_script_says_how_the_rest_was_weighed(said: Say, asked: Say) -> None:
    asked("斑马 zebra")
    shown = " ".join(said("runs", "show").split())
    # Of the two terms "zebra" alone can lead to text without such letters, and it is all that occurs.
    assert "meaning 65%, words 35%; then looking again 65% of the result" in shown
    assert "for text in another script than the query's 65%, then 65%" in shown
    asked("zebra")
    assert "another script" not in said("runs", "show")


@pytest.mark.requirement("cli.json", "runs.readable")
def test_the_json_of_a_run_keeps_its_shape(said: Say, asked: Say) -> None:
    run = asked("zebra stripes")
    found = json.loads(said("runs", "show", run, "--json"))
    assert found.keys() == {"run", "trace"}
    assert found["run"]["run_id"] == run
    assert {"query_terms", "coverage", "alpha", "rerank_weight", "reranker", "tokens", "index_lag",
            "latencies_ms", "selected", "candidates", "missing_terms"} <= found["trace"].keys()  # fmt: skip
    assert {"unit_key", "resource_id", "path", "heading_path", "reason", "ordinal", "identity", "overlay",
            "bm25_rank", "bm25", "bm25_share", "dense_rank", "dense", "rrf", "fused", "rerank", "final",
            "relevant", "margin", "tokens", "draft"} <= found["trace"]["candidates"][0].keys()  # fmt: skip


@pytest.mark.requirement("runs.readable", "runs.pinned")
def test_runs_are_listed_and_pinned(said: Say, asked: Say) -> None:
    run = asked("when to feed the zebra")
    listed = said("runs", "list", "--limit", "1")
    assert listed.splitlines()[1].split()[0] == run
    assert "when to feed the zebra" in listed
    assert "pinned" not in listed
    assert "kept" in said("runs", "pin", run)
    assert "pinned" in said("runs", "list", "--limit", "1")
    assert json.loads(said("runs", "unpin", run, "--json"))["pinned"] is False
    assert "run_not_found" in said("runs", "pin", "run_nothing", status=1)
    assert "nothing found" in (asked("quantum entanglement") and said("runs", "list", "--limit", "1"))
    assert too_wide(said("runs", "list", "--limit", "200")) == []


@pytest.mark.requirement("runs.readable")
def test_a_run_that_another_release_wrote_is_readable(said: Say, daemon: Daemon) -> None:
    from client.store.activations import RunRow

    candidate = {"unit_key": "mem_a/a/0/0", "path": "a.md", "heading_path": ["A\u202e"], "fused": 0.5}
    old = {"candidates": [candidate | {"reason": "of_tomorrow", "rerank": None}], "selected": []}
    with daemon.store.write() as uow:
        uow.runs.add(RunRow("run_old", PROJECT, 5, "how \x1b[2J long?", "search_1", 0, 12.5, False, old))
        uow.runs.add(RunRow("run_bare", PROJECT, 6, "bare", "search_1", 0, 12.5, False, {}))
    shown = said("runs", "show", "run_old")
    assert "of tomorrow" in shown
    assert "a.md > A<U+202E>" in shown
    assert "how <U+001B>[2J long?" in shown
    assert "Nothing was returned." in said("runs", "show", "run_bare")


@pytest.mark.requirement("explain.readable")
def test_explain_says_first_whether_and_last_what_to_do(said: Say) -> None:
    shown = said("explain", "sign the package", "tea.md")
    assert shown.startswith("Not returned: tea.md ")
    head, _, rest = shown.partition("Best of 2 parts: ")
    assert "all 2 query terms occur in this memory" in head
    assert "not in it" in rest
    assert "below" in rest
    assert "weakest returned" in rest
    assert "guides/release.md > Release" in rest
    advice = rest.partition("What you can do\n")[2]
    assert "    interleaf draft edit tea.md --description '…'\n" in advice
    assert too_wide(shown) == []
    returned = said("explain", "sign the package", "guides/release.md")
    assert returned.startswith("Returned: guides/release.md gives fragment 1 of 1.")
    assert "Its only part: Release" in returned
    assert "What you can do" not in returned


@pytest.mark.requirement("explain.readable")
@pytest.mark.parametrize(
    ("query", "resource"),
    [
        ("合同编号", WIDE),
        ("天气预报怎么样", WIDE),
        ("zebra part", LONG),
        ("zebra", "many/59.md"),
        ("...", LONG),
        ("x" * 3_000, "mem_rel"),
        (" ".join(f"word{n}" for n in range(300)), "mem_rel"),
    ],
)
def test_every_kind_of_explanation_fits_80_columns(said: Say, query: str, resource: str) -> None:
    shown = said("explain", query, resource, "--all")
    # A command is printed whole, so that it can be copied.
    assert [line for line in too_wide(shown) if not line.startswith("    interleaf ")] == []
    assert "\x1b" not in shown


@pytest.mark.requirement("explain.readable")
def test_three_parts_are_shown_and_all_on_request(said: Say) -> None:
    few, every = said("explain", "zebra", LONG), said("explain", "zebra", LONG, "--all")
    assert few.count("Outcome") == 3
    assert "1 more part of the document came less far" in few
    assert every.count("Outcome") == 4
    assert "2 parts of this document are in already" in every or "the answer is full" in every


@pytest.mark.requirement("cli.json", "explain.readable")
def test_explain_has_its_json_and_its_errors(said: Say, daemon: Daemon) -> None:
    found = json.loads(said("explain", "sign the package", "tea.md", "--json"))
    assert found["verdict"] == "below_relevance"
    assert found["units"][0]["floor"].keys() == {"meaning", "reranker", "words", "needed", "margin"}
    unknown = said("explain", "tea", "tee.md", status=1)
    assert "memory_resource_not_found" in unknown
    assert "perhaps tea.md" in unknown
    empty = said("explain", "", "tea.md", status=1)
    assert "invalid_arguments" in empty


@pytest.mark.requirement("explain.read-only")
def test_explain_leaves_no_run(said: Say) -> None:
    before = said("runs", "list", "--limit", "200", "--json")
    said("explain", "sign the package", "tea.md")
    assert said("runs", "list", "--limit", "200", "--json") == before

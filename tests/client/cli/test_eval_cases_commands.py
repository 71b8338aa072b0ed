"""``eval case``, ``eval report`` and ``eval export`` as a person uses them, through a real daemon."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from structlog.testing import capture_logs

from client.cli.app import execute
from client.services.evaluation.sets import read_set
from client.wiring import Daemon
from shared_schema.tool_contract import Activate
from tests.client.daemon.real_daemon import WAIT_SECONDS, ReadyModels, bind, install, running, settings
from tests.client.local_world import PROJECT, published

Say = Callable[..., str]
WIDE = "zh/发布流程/一个很长的文件名用来看看表格会不会太宽.md"
DOCUMENTS = (
    published("mem_rel", "guides/release.md", "# Release\n\nTag the commit and sign the package.\n"),
    published("mem_old", "guides/old.md", "# Old release\n\nTag the commit by tape.\n"),
    published("mem_tea", "tea.md", "# Tea\n\nHot water, three minutes.\n", description="How to make tea"),
    published("mem_zh", WIDE, "# 发布流程\n\n先检查合同编号。\n"),
)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    with capture_logs(), running(settings(tmp_path / "interleaf"), ReadyModels()) as made:
        install(made, resources=DOCUMENTS)
        bind(made, checkout)
        deadline = time.monotonic() + WAIT_SECONDS
        while made.services.status.index(PROJECT).state != "ready":
            assert time.monotonic() < deadline, "the first index"
            made.index.run_once()
        yield made


@pytest.fixture
def said(daemon: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    home = daemon.settings.places.home
    monkeypatch.setenv("INTERLEAF_HOME", str(home))
    monkeypatch.chdir(home.parent / "checkout")

    def run(*arguments: str, status: int = 0) -> str:
        capsys.readouterr()
        assert execute(["eval", *arguments]) == status
        out, err = capsys.readouterr()
        return out if status == 0 else err

    return run


@pytest.fixture
def asked(daemon: Daemon) -> Say:
    def ask(query: str) -> str:
        answer = daemon.services.activate(PROJECT, Activate(query=query))
        assert answer.run_id is not None
        return answer.run_id

    return ask


@pytest.fixture
def case(said: Say, asked: Say) -> Say:
    def make(query: str, *judgment: str) -> str:
        made = json.loads(said("case", "create", asked(query), "--json"))["case"]["case_id"]
        if judgment:
            said("case", "judge", made, *judgment)
        return str(made)

    return make


def too_wide(text: str) -> list[str]:
    # What is to be copied is never broken.
    return [line for line in text.splitlines() if cell_len(line) > 80 and "interleaf " not in line]


def loaded(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    return value


@pytest.mark.requirement("eval.case.commands")
def test_a_case_from_its_run_to_its_end(said: Say, asked: Say) -> None:
    assert "no cases yet" in said("case", "list")
    made = said("case", "create", asked("how to tag the commit?"), "--note", "as found")
    name = made.split()[0]
    assert name.startswith("evc_")
    assert "4 frozen documents" in made
    assert "not judged yet" in said("case", "list")
    judged = said(
        "case", "judge", name, "--evidence", "guides/release.md#Release=3", "--evidence", f"{WIDE}=1",
        "--forbid", "guides/old.md", "--expect-version", "1",
    )  # fmt: skip
    assert "guides/release.md#release/0/0 (mem_rel)" in judged
    assert "never" in judged
    assert "version 1, " in judged.partition("Before")[2]
    listed = said("case", "list")
    assert "2 graded, 1 forbidden, version 2" in listed
    shown = said("case", "show", name)
    assert "as found" in shown
    for text in (made, judged, listed, shown):
        assert too_wide(text) == []
    assert "deleted" in said("case", "delete", name, "--expect-version", "2")
    assert "not_found" in said("case", "show", name, status=1)


@pytest.mark.requirement("eval.case.commands", "eval.case.versions")
def test_what_goes_wrong_is_told_with_the_next_step(said: Say, asked: Say, case: Say, tmp_path: Path) -> None:
    name = case("how to tag the commit?", "--none-matched")
    late = said("case", "judge", name, "--none-matched", "--expect-version", "1", status=1)
    assert "version_conflict" in late
    assert f"interleaf eval case show {name}" in late
    for wrong in ("tea.md", "tea.md=4", "tea.md=", "=2", "tea.md=-1"):
        assert "end it with =1, =2 or =3" in said("case", "judge", name, "--evidence", wrong, status=1)
    assert "perhaps tea.md" in said("case", "judge", name, "--forbid", "tee.md", status=1)
    assert "nothing is said" in said("case", "judge", name, status=1)
    body = tmp_path / "body.md"
    body.write_text("# New\n", encoding="utf-8")
    assert execute(["draft", "create", "--path", "new.md", "--body-file", str(body)]) == 0
    run = asked("how is tea made?")
    assert execute(["draft", "create", "--path", "newer.md", "--body-file", str(body)]) == 0
    outdated = said("case", "create", run, status=1)
    assert "run_outdated" in outdated
    assert "interleaf runs list" in outdated
    newer = asked("how to tag the commit?")
    moved = loaded(said("case", "freeze", name, newer, "--json"))
    assert (moved["case"]["documents"], moved["case"]["version"], moved["case"]["run_id"]) == (6, 3, newer)


@pytest.mark.requirement("eval.report.readable")
def test_a_report_fits_80_columns_and_names_what_is_wrong(said: Say, case: Say) -> None:
    assert "Make one with: interleaf eval case create RUN" in said("report")
    case("how to tag the commit?", "--evidence", "guides/release.md=3", "--forbid", "guides/old.md")
    wrong = case("hot water", "--none-matched")
    case("合同编号怎么检查", "--evidence", f"{WIDE}=2")
    case("quantum entanglement", "--none-matched")
    assert "1 case to judge" not in said("report")
    case("not judged")
    shown = said("report")
    assert shown.startswith(f"{PROJECT}: 5 cases, 4 judged, 2 with evidence, 2 with nothing to find")
    assert "B1 words (BM25)" in shown
    assert "1 of 2 with nothing to find are empty" in shown
    assert "100% hold evidence, 100% of it" in shown
    assert "1 forbidden, 0 out of scope, 0 stale" in shown
    assert "1 fragment where nothing answers" in shown.partition(wrong)[2]
    assert "1 case to judge: interleaf eval case list" in shown
    assert too_wide(shown) == []
    found = loaded(said("report", "--json"))
    assert (found["format"], found["judged"]) == (1, 4)
    assert found["answers"]["forbidden_hits"] == 1
    assert len(found["by_case"]) == 4


@pytest.mark.requirement("eval.report.readable")
def test_how_far_a_report_is_stands_on_stderr_alone(
    said: Say, case: Say, capsys: pytest.CaptureFixture[str]
) -> None:
    case("how to tag the commit?", "--evidence", "guides/release.md=3")
    assert execute(["eval", "report", "--json"]) == 0
    out, err = capsys.readouterr()
    assert loaded(out)["judged"] == 1
    assert err == ""


@pytest.mark.requirement("eval.export.document", "eval.export.private")
def test_an_export_is_one_private_file(said: Say, case: Say, tmp_path: Path) -> None:
    case("how to tag the commit?", "--evidence", "guides/release.md=3", "--forbid", "guides/old.md")
    path = tmp_path / "cases.json"
    assert "1 case and 4 documents are in" in said("export", str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = loaded(path.read_text(encoding="utf-8"))
    assert found["report"]["judged"] == 1
    assert {each["path"] for each in found["documents"].values()} == {each.path for each in DOCUMENTS}
    refused = said("export", str(path), status=1)
    assert "already_exists" in refused
    assert "--force" in refused
    assert loaded(said("export", str(path), "--force", "--no-report", "--json"))["cases"] == 1
    assert loaded(path.read_text(encoding="utf-8"))["report"] is None
    assert loaded(said("export", "-"))["cases"] == found["cases"]
    assert "invalid_arguments" in said("export", status=1)


@pytest.mark.requirement("eval.export.set")
def test_an_export_as_a_set_can_be_read_as_one(said: Say, case: Say, tmp_path: Path) -> None:
    assert "No case is judged yet" in said("export", "--as-set", str(tmp_path / "set"))
    name = case("how to tag the commit?", "--evidence", "guides/release.md=3", "--forbid", "guides/old.md")
    told = said("export", "--as-set", str(tmp_path / "set"))
    assert "1 query, 4 documents:" in told
    assert f"interleaf eval run {tmp_path / 'set'}" in told
    assert read_set(tmp_path / "set").judgments == {name: {"mem_rel": 3, "mem_old": -1}}
    assert "already_exists" in said("export", "--as-set", str(tmp_path / "set"), status=1)

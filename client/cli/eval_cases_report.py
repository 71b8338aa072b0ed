"""``interleaf eval report`` and ``export``: how well the cases are answered, on a screen or in a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from client.cli.local import ask, chosen
from client.cli.options import InProject, Json
from client.cli.output import busy, console, count, print_json, say, show, styled, table
from client.cli.variant_names import NAMES
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.evaluation_contract import (
    EvaluationExport,
    ExportCall,
    ExportedDocument,
    ExportedPage,
    ExportPageCall,
    ReportCall,
    ReportState,
    ReportStateCall,
)

AsSet = Annotated[
    Path | None,
    typer.Option("--as-set", metavar="DIR", help="Write what `interleaf eval run DIR` reads."),
]
WRONG_CASES = 10
"""Cases that are listed as answered wrongly; --json has all."""
_FAULTS = {"forbidden_hits": "Forbidden", "scope_violations": "Out of scope", "stale_results": "Stale"}


def report(project: InProject = None, as_json: Json = False) -> None:
    """Ask all judged cases again, and measure the answers.

    Each over the documents that were frozen for it, so that figures of two releases, models or settings
    compare. Four rankings of the same searches: words, meaning, both fused, and the whole. The daemon
    does it; documents whose vectors are not kept any more are embedded again, which takes a while.
    """
    found = _made(chosen(project), as_json)
    show(found, as_json, lambda: _print(found))


def export(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="Where to; - for standard output.", show_default=False),
    ] = None,
    as_set: AsSet = None,
    no_report: Annotated[
        bool, typer.Option("--no-report", help="Leave the report out; nothing is asked again.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Write cases, their documents and the report to one file.

    It is JSON. It holds the full text of frozen documents, so only you may read it. Nothing is sent anywhere.
    """
    from client.services.evaluation.export import document_of, sets_of
    from client.services.evaluation.export_files import check_free, write_export, write_sets

    if (file is None) == (as_set is None):
        raise InterleafError(ErrorCode.INVALID_ARGUMENTS, "Give a FILE, or - , or --as-set DIR.")
    check_free(file, as_set, force=force)
    place = chosen(project)
    with busy("Reading", as_json=as_json):
        exported = ask("export_evaluation", ExportCall(project=place), EvaluationExport)
        documents = _documents(place)
    if as_set is not None:
        written = write_sets(sets_of(exported, documents), as_set, force=force)
        show(written, as_json, lambda: _print_sets(written))
        return
    made = None if no_report else _made(place, as_json or file == "-")
    whole = document_of(exported, documents, made, time.time_ns() // 1_000_000)
    if file is None or file == "-":
        print_json(whole)
        return
    written = write_export(whole, Path(file), force=force)
    show(written, as_json, lambda: _print_export(written))


def _made(project: str, quiet: bool) -> dict[str, Any]:
    """Return a report, and show how far it is unless ``quiet``."""
    with _Progress(quiet) as progress:
        state = ask("start_evaluation_report", ReportCall(project=project), ReportState)
        while state.report is None:
            state = ask("evaluation_report", ReportStateCall(report_id=state.report_id), ReportState)
            progress.update(state)
    return state.report


def _documents(project: str) -> dict[str, ExportedDocument]:
    documents: dict[str, ExportedDocument] = {}
    after = ""
    while True:
        page = ask("exported_documents", ExportPageCall(project=project, after=after), ExportedPage)
        if not page.documents:
            return documents
        documents |= {each.digest: each for each in page.documents}
        after = page.documents[-1].digest


class _Progress:
    """Shows on stderr how far a report is: a bar on a terminal, elsewhere a line for each stage."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def __enter__(self) -> Self:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        screen = console(stderr=True)
        self._on_terminal = screen.is_terminal and not self._quiet
        self._stage = ""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._bar = Progress(*columns, console=screen, transient=True, disable=not self._on_terminal)
        self._task = self._bar.add_task("waiting", total=None)
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, state: ReportState) -> None:
        """Show one more state."""
        self._bar.update(self._task, description=state.stage, completed=state.done, total=state.total or None)
        if self._quiet or self._on_terminal or state.stage in (self._stage, "finished"):
            return
        self._stage = state.stage
        say(f"{state.stage}: {state.done} of {state.total}" if state.total else state.stage, stderr=True)


def _print(found: dict[str, Any]) -> None:
    parts = [f"{found['judged']} judged", f"{found['graded']} with evidence"]
    parts += [f"{found['none_matched']} with nothing to find"] if found["none_matched"] else []
    say(f"{found['project_name']}: {count(found['cases'], 'case')}, {', '.join(parts)}", style="bold")
    if not found["cases"]:
        say("Make one with: interleaf eval case create RUN")
        return
    if found["judged"]:
        _print_rankings(found)
        _print_answers(found)
        _print_wrong(found["by_case"])
    if found["unjudged"]:
        say(f"\n{count(len(found['unjudged']), 'case')} to judge: interleaf eval case list")


def _print_rankings(found: dict[str, Any]) -> None:
    rankings = {name: found["variants"].get(name) or found["references"].get(name) for name in NAMES}
    if found["graded"]:
        say()
        table(
            ["Ranking", "nDCG@10", "MRR@10", "Recall@20", "B4 less this, won/lost"],
            [
                [NAMES[name], *_measures(ranking), _difference(found["differences"].get(name))]
                for name, ranking in rankings.items()
            ],
            empty="",
        )
    say()
    table(
        ["First ten", "Diversity", *_FAULTS.values()],
        [
            [NAMES[name], _share(ranking["diversity@10"]), *(str(ranking[fault]) for fault in _FAULTS)]
            for name, ranking in rankings.items()
        ],
        empty="",
    )


def _measures(ranking: dict[str, Any]) -> list[str]:
    return [f"{ranking[name]:.3f}" for name in ("ndcg@10", "mrr@10", "recall@20")]


def _difference(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    span = f"[{found['low']:+.3f}, {found['high']:+.3f}]"
    return f"{found['mean']:+.3f} {span} {found['wins']}/{found['losses']}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _print_answers(found: dict[str, Any]) -> None:
    answers, latency = found["answers"], found["latency_ms"]
    say("\nAnswers", style="bold")
    if found["graded"]:
        say(f"{_share(answers['with_evidence'])} hold evidence, {_share(answers['evidence_returned'])} of it")
    empty = answers["none_matched_left_empty"]
    if empty["of"]:
        say(f"{empty['empty']} of {empty['of']} with nothing to find are empty")
    say(
        f"{answers['fragments']:.1f} fragments of {answers['resources']:.1f} documents, diversity "
        f"{_share(answers['diversity'])}"
    )
    say(", ".join(f"{answers[fault]} {title.lower()}" for fault, title in _FAULTS.items()))
    say(f"{latency['p50']:.0f} ms a query (p95 {latency['p95']:.0f}), {found['reranker'].replace('_', ' ')}")


def _print_wrong(cases: list[dict[str, Any]]) -> None:
    wrong = [(case, problem) for case in cases if (problem := _problem(case))]
    if not wrong:
        return
    say()
    table(
        ["Answered wrongly", "Query; what is wrong"],
        [[case["case_id"], styled(case["query"], "bold", problem)] for case, problem in wrong[:WRONG_CASES]],
        empty="",
    )
    if len(wrong) > WRONG_CASES:
        say(f"{len(wrong) - WRONG_CASES} more: interleaf eval report --json")


def _problem(case: dict[str, Any]) -> str:
    answer = case["answer"]
    found = [f"{answer[fault]} {title.lower()}" for fault, title in _FAULTS.items() if answer[fault]]
    if case["kind"] == "none_matched" and answer["fragments"]:
        found.append(f"{count(answer['fragments'], 'fragment')} where nothing answers")
    if case["kind"] == "graded" and not answer["evidence_returned"]:
        found.append("none of the evidence")
    if case["lost_units"]:
        found.append(f"{count(len(case['lost_units']), 'graded part')} not there any more")
    return ", ".join(found)


def _print_export(written: dict[str, Any]) -> None:
    say(f"{count(written['cases'], 'case')} and {count(written['documents'], 'document')} are in")
    say(written["file"])


def _print_sets(written: dict[str, Any]) -> None:
    if not written["sets"]:
        say("No case is judged yet, so nothing was written. Judge them: interleaf eval case list")
        return
    for each in written["sets"]:
        say(f"{count(each['queries'], 'query', 'queries')}, {count(each['documents'], 'document')}:")
        say(each["folder"])
    say(f"Measure with: interleaf eval run {written['sets'][0]['folder']}")

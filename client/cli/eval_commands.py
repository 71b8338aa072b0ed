"""``interleaf eval``: how good the ranking is, measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from client.cli import eval_cases_commands
from client.cli.options import Json
from client.cli.output import busy, console, count, print_json, say, table
from client.cli.taught import noun, verb
from client.cli.variant_names import NAMES

app = noun("interleaf eval run my-set/", "interleaf eval case create run_…", "interleaf eval report --json")


@verb(
    app,
    "run",
    "interleaf eval run my-set/",
    "interleaf eval run sets/* --json --plot ndcg.svg",
    "interleaf eval run big-set/ --queries 50 --documents 500",
    more=(
        "A set is a folder with corpus.jsonl ({id, path, title, text} a line), queries.jsonl ({id, text} a "
        "line) and qrels.tsv (query id, document id, grade; tab-separated). Grade 0 is not relevant, a "
        "negative grade marks a document that must not be returned."
    ),
)
def run(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER", help="Folders, each with one set.")],
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw nDCG@10 by set: .svg, .png or .pdf."),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option("--queries", metavar="N", min=1, help="Only so many queries, always the same ones."),
    ] = None,
    documents: Annotated[
        int | None,
        typer.Option(
            "--documents", metavar="N", min=1, help="Only so many documents; judged ones are always in."
        ),
    ] = None,
    by_query: Annotated[
        bool, typer.Option("--by-query", help="With --json: every query's measures and answer.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure the ranking on sets of documents, questions and judgments.

    Each set is cut, embedded, indexed and asked as agents' questions are, on this machine alone: no
    server, no daemon, no Project. Four rankings of the same searches are compared: words, meaning,
    both fused, and the whole. Embedding takes about 75 ms a passage and processor, once: vectors are
    kept for the next time.
    """
    from client.frugal import one_blas_thread

    # As in the daemon, so that the times are those that agents meet; before NumPy is imported.
    one_blas_thread()
    from client.config import Settings
    from client.services.evaluation.measure_sets import measure_sets
    from client.services.evaluation.plot_sets import check_plot, plot_sets
    from client.services.evaluation.report_set import report_of
    from client.services.evaluation.sets import read_set

    if plot is not None:
        check_plot(plot)
    with busy("Reading", as_json=as_json):
        sets = [read_set(folder).sample(queries, documents) for folder in folders]
    with _Bars(as_json) as bars:
        results = measure_sets(
            sets,
            Settings(),
            preparing=bars.preparing,
            progress=lambda each: bars.measuring(each.name),
        )
    reports = [report_of(result, queries=by_query) for result in results]
    if plot is not None:
        plot_sets(reports, plot)
    if as_json:
        print_json(reports[0] if len(reports) == 1 else {"format": 1, "sets": reports})
        return
    for report in reports:
        _print(report)
    if len(reports) > 1:
        _print_means(reports)
    if plot is not None:
        say(f"\nPlot: {plot}")


eval_cases_commands.register(app)


def _print(report: dict[str, Any]) -> None:
    say(
        f"\n{report['set']}: {count(report['queries'], 'query', 'queries')}, "
        f"{count(report['documents'], 'document')}, {count(report['units'], 'unit')}",
        style="bold",
    )
    rows = []
    for name in NAMES:
        measures = report["variants"].get(name) or report["references"][name]
        rows.append([NAMES[name], *_measures(measures), _difference(report["differences"].get(name))])
    table(["Ranking", "nDCG@10", "MRR@10", "Recall@20", "B4 less this, won/lost"], rows, empty="")
    answers, latency = report["answers"], report["latency_ms"]
    found = answers["with_a_right_document"]
    parts = [
        "" if found is None else f"{found:.0%} of the answers hold a right document",
        f"{answers['documents']:.1f} documents an answer",
        f"{answers['forbidden_hits']} forbidden" if answers["forbidden_hits"] else "",
        f"{latency['p50']:.0f} ms a query (p95 {latency['p95']:.0f}), {report['reranker'].replace('_', ' ')}",
    ]
    say("\n".join(part for part in parts if part))


def _print_means(reports: list[dict[str, Any]]) -> None:
    say(f"\nMeans of {len(reports)} sets", style="bold")
    rows = []
    for name in NAMES:
        each = [report["variants"].get(name) or report["references"][name] for report in reports]
        means = {key: sum(measures[key] for measures in each) / len(each) for key in each[0]}
        rows.append([NAMES[name], *_measures(means)])
    table(["Ranking", "nDCG@10", "MRR@10", "Recall@20"], rows, empty="")


def _measures(measures: dict[str, float]) -> list[str]:
    return [f"{measures[name]:.3f}" for name in ("ndcg@10", "mrr@10", "recall@20")]


def _difference(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    return (
        f"{found['mean']:+.3f} [{found['low']:+.3f}, {found['high']:+.3f}] {found['wins']}/{found['losses']}"
    )


class _Bars:
    """Progress on stderr: bars on a terminal, a line now and then elsewhere, nothing with --json."""

    _EVERY = 20.0

    def __init__(self, as_json: bool) -> None:
        self._quiet = as_json
        self._next_line = 0.0
        self._shown = ""

    def __enter__(self) -> _Bars:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        screen = console(stderr=True)
        self._terminal = screen.is_terminal and not self._quiet
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=screen,
            transient=True,
            disable=not self._terminal,
        )
        self._task = self._bar.add_task("", total=None)
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def preparing(self, stage: Any, done: int) -> None:
        """Show how far the model is."""
        if stage.value != "ready":
            self._show(f"model: {stage.value}", done >> 20, None)

    def measuring(self, name: str) -> Callable[[str, int, int], None]:
        """Return what shows how far one set is."""
        return lambda stage, done, total: self._show(f"{name}: {stage}", done, total)

    def _show(self, what: str, done: int, total: int | None) -> None:
        self._bar.update(self._task, description=what, completed=done, total=total)
        now = time.monotonic()
        if self._quiet or self._terminal or (what == self._shown and now < self._next_line):
            return
        self._shown, self._next_line = what, now + self._EVERY
        say(f"{what} {done}" + (f" of {total}" if total else ""), stderr=True)

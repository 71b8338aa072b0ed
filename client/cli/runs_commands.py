"""``interleaf runs``: what agents asked for on this machine, and what they got."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Final

import typer

from client.cli.local import ask, chosen_or_all
from client.cli.options import InProject, Json
from client.cli.output import count, facts, moment, say, show, styled, table
from client.cli.ranking_table import Row, named, print_rows
from client.cli.taught import noun, verb
from shared_schema import limits
from shared_schema.daemon_contract import RunCall, RunDetail, RunItem, RunList, RunListCall, RunPinCall
from shared_schema.errors import ErrorCode, InterleafError

app = noun("interleaf runs list", "interleaf runs show")

ROWS: Final = 20
"""Candidates that are shown unless all are asked for."""

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Run id, as `runs list` shows.")]


@verb(app, "list", "interleaf runs list --limit 50")
def list_runs(
    project: InProject = None,
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=1, max=limits.PAGE_MAX, help="How many.", show_default=True),
    ] = 20,
    as_json: Json = False,
) -> None:
    """List the latest activations, newest first.

    They never leave this machine. Of each Project 500 are kept, and those that you pin.
    """
    place = chosen_or_all(project)
    found = ask("list_runs", RunListCall(project=place, limit=limit), RunList)

    def human() -> None:
        table(
            ["Run", "Query; time, answer"],
            [
                [item.run_id, styled(item.query, "bold", _summary(item, with_project=place is None))]
                for item in found.runs
            ],
            empty="No agent has asked for memory here yet.",
        )
        if found.runs:
            say("\nHow one was ranked: interleaf runs show RUN")

    show(found, as_json, human)


@verb(app, "show", "interleaf runs show", "interleaf runs show run_… --all")
def show_run(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="Run id, as `runs list` shows; default: the latest.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All candidates, not only the best 20.")] = False,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Show one activation: how each candidate was ranked.

    And why it was returned or left out. The columns: its rank by words and by meaning, its place when
    both are fused, its place after the reranker looked again, and how far it is above (+) or below (-)
    the relevance floor. A dash: not among that list's candidates, or not looked at again.
    """
    found = ask("show_run", RunCall(run_id=run or _latest(project)), RunDetail)
    show(found, as_json, lambda: _print(found, every))


@verb(app, "pin", "interleaf runs pin run_…")
def pin(run: RunArgument, as_json: Json = False) -> None:
    """Keep an activation however many follow it."""
    found = ask("pin_run", RunPinCall(run_id=run, pinned=True), RunItem)
    show(found, as_json, lambda: say("The run is kept until you unpin it."))


@verb(app, "unpin", "interleaf runs unpin run_…")
def unpin(run: RunArgument, as_json: Json = False) -> None:
    """Let an activation go when newer ones need its room."""
    found = ask("pin_run", RunPinCall(run_id=run, pinned=False), RunItem)
    show(found, as_json, lambda: say("The run goes when 500 newer ones are there."))


def _latest(project: str | None) -> str:
    found = ask("list_runs", RunListCall(project=chosen_or_all(project), limit=1), RunList)
    if not found.runs:
        raise InterleafError(ErrorCode.RUN_NOT_FOUND, "No agent has asked for memory here yet.")
    return found.runs[0].run_id


def _summary(item: RunItem, *, with_project: bool) -> str:
    parts = [moment(item.created_at), _fragments(item.fragments), f"{item.latency_ms:.0f} ms"]
    parts += [item.project_name or item.project_id] if with_project else []
    parts += ["pinned"] if item.pinned else []
    return ", ".join(parts)


def _fragments(number: int) -> str:
    return count(number, "fragment") if number else "nothing found"


def _print(found: RunDetail, every: bool) -> None:
    run = found.run
    # Read as a record is: an older release may have written it.
    trace: dict[str, Any] = found.trace
    candidates: list[dict[str, Any]] = trace.get("candidates", [])
    looked_at = sum(1 for each in candidates if each.get("rerank") is not None)
    facts(
        [
            ("Query", run.query),
            ("Run", f"{run.run_id}, pinned" if run.pinned else run.run_id),
            ("Asked", f"{moment(run.created_at)}, Project {run.project_name or run.project_id}"),
            ("Time", time_spent(run.latency_ms, trace.get("latencies_ms", {}))),
            ("Words", _words(run.query, trace)),
            ("Weights", _weights(trace)),
            ("Reranker", _reranker(trace.get("reranker"), looked_at, len(candidates))),
            ("Index", _index(run.index_revision, lag=bool(trace.get("index_lag")))),
        ]
    )
    returned, others = _rows(trace, candidates, looked_at)
    room = len(others) if every else max(ROWS - len(returned), 0)
    say()
    if returned:
        tokens = trace.get("tokens", 0)
        say(f"Returned: {count(len(returned), 'fragment')}, {tokens:,} tokens", style="bold")
        print_rows(returned)
    else:
        say("Nothing was returned.", style="bold")
    if others[:room]:
        say("\nNot returned, best first", style="bold")
        print_rows(others[:room])
    if more := len(others) - len(others[:room]):
        say(f"\n{more} more: interleaf runs show {run.run_id} --all")
    say("\nWhy a document is here or not: interleaf explain QUERY DOCUMENT")


def _rows(
    trace: dict[str, Any], candidates: list[dict[str, Any]], looked_at: int
) -> tuple[list[Row], list[Row]]:
    """Return what was returned, in the order of the answer, and the rest, best first."""
    answer = {key: number for number, key in enumerate(trace.get("selected", []), 1)}
    taken = Counter(each.get("resource_id") for each in candidates if each.get("unit_key") in answer)
    by_fused = sorted(range(len(candidates)), key=lambda index: -candidates[index].get("fused", 0.0))
    fused = {index: place for place, index in enumerate(by_fused, 1)}
    returned: list[Row] = []
    others: list[Row] = []
    for index, each in enumerate(candidates):
        number = answer.get(each.get("unit_key"))
        row = Row(
            number=number,
            name=named(each.get("path", ""), each.get("heading_path", []), each.get("unit_key", "")),
            words=each.get("bm25_rank"),
            meaning=each.get("dense_rank"),
            fused=fused[index],
            again=None if each.get("rerank") is None else index + 1,
            margin=each.get("margin"),
            note=_note(each, number, looked_at, taken[each.get("resource_id")]),
        )
        (others if number is None else returned).append(row)
    return sorted(returned, key=lambda row: row.number or 0), others


def _note(each: dict[str, Any], number: int | None, looked_at: int, taken: int) -> str:
    from client.domain.reason_words import reason_words

    tokens = each.get("tokens")
    if number is None:
        parts = [reason_words(each.get("reason", ""), looked_at=looked_at, taken=taken, tokens=tokens)]
    else:
        parts = [] if tokens is None else [count(tokens, "token")]
    parts += ["named in the query"] if each.get("identity") else []
    parts += ["unpublished change"] if each.get("draft") else []
    parts += ["newer than the index"] if each.get("overlay") else []
    return "; ".join(parts)


_STAGES: Final = {
    "view": "changes",
    "lexical": "words",
    "embed_query": "query to vector",
    "embed_overlay": "vectors of changes",
    "dense": "meaning",
    "fusion": "fusion",
    "rerank": "looking again",
    "assembly": "choosing",
}


def time_spent(total: float, stages: dict[str, float]) -> str:
    """Return where the milliseconds went, the most first; what is less than one is summed up."""
    long = sorted(((ms, name) for name, ms in stages.items() if ms >= 1.0), reverse=True)
    shown = [f"{_STAGES.get(name, name)} {ms:.0f}" for ms, name in long]
    rest = total - sum(ms for ms, _ in long)
    if shown and rest >= 1.0:
        shown.append(f"other {rest:.0f}")
    return f"{total:.0f} ms: {', '.join(shown)}" if shown else f"{total:.0f} ms"


def _words(query: str, trace: dict[str, Any]) -> str | None:
    if "missing_terms" not in trace:
        return None
    from client.domain.query_words import as_written

    return coverage(len(trace["query_terms"]), as_written(query, trace["missing_terms"]))


def coverage(terms: int, missing: list[str]) -> str:
    """Return in words how many of the query's terms the memory knows, and which it does not."""
    from client.domain.query_words import run_together

    if not terms:
        return "the query has no words to look for"
    if not missing:
        return (
            "the query's term occurs in this memory"
            if terms == 1
            else f"all {terms} query terms occur in this memory"
        )
    known = f"{terms - len(missing)} of {count(terms, 'query term')} occur in this memory"
    return f"{known}, not: {', '.join(run_together(missing))}"


def _weights(trace: dict[str, Any]) -> str | None:
    alpha, again = trace.get("alpha"), trace.get("rerank_weight")
    if alpha is None or again is None:
        return None
    said = f"meaning {alpha:.0%}, words {1 - alpha:.0%}; then looking again {again:.0%} of the result"
    if (other := trace.get("foreign_weights")) is None:
        return said
    return f"{said}; for text in another script than the query's {other[0]:.0%}, then {other[1]:.0%}"


def _reranker(name: str | None, looked_at: int, candidates: int) -> str | None:
    if name is None:
        return None
    return f"{name.replace('_', ' ')}, on {looked_at} of {count(candidates, 'candidate')}"


def _index(revision: str, *, lag: bool) -> str:
    return f"{revision}; some changes could not be searched yet" if lag else revision

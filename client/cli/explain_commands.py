"""``interleaf explain``: why a document is in the answer to a query or not."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from client.cli.local import ask, chosen
from client.cli.memory_commands import ResourceArgument
from client.cli.options import InProject, Json
from client.cli.output import busy, count, facts, say, show, table
from client.cli.ranking_table import gauge, named, prose, signed
from client.cli.runs_commands import coverage
from client.cli.taught import verb
from shared_schema.explanations import ExplainCall, Explained, ExplainedUnit, FloorShares

app = typer.Typer()

PARTS: Final = 3
"""Parts of the document that are shown unless all are asked for."""
_FIELDS: Final = {"path": "path", "headings": "headings", "body": "text"}


@verb(
    app,
    "explain",
    "interleaf explain 'how long may a review wait?' guides/code-review.md",
    "interleaf explain 'release steps' mem_… --project Rocket --json",
)
def explain(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What an agent would ask, in quotes.")],
    resource: ResourceArgument,
    every: Annotated[bool, typer.Option("--all", help="All parts of the document, not only 3.")] = False,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Say why a document is in the answer to a query, or not.

    The query runs as an agent's would, now, and leaves no trace. For each part of the document: its
    ranks among all parts, its relevance against the floor, what became of it, and what you can do.
    """
    place = chosen(project)
    with busy("Searching", as_json=as_json):
        call = ExplainCall(project=place, query=query, resource=resource)
        found = ask("explain", call, Explained)
    show(found, as_json, lambda: _print(found, every))


def _print(found: Explained, every: bool) -> None:
    prose(found.sentence, "bold")
    say()
    missing = [term.written for term in found.terms if not term.units]
    path = f"{found.path} ({found.resource_id})" if found.path else found.resource_id
    searched = found.index_revision is not None
    facts(
        [
            ("Query", found.query),
            ("Document", path),
            ("Project", found.project_name),
            ("Words", coverage(len(found.terms), missing) if searched else None),
            ("Answer", _answer(found) if searched else None),
            ("Index", "some changes could not be searched yet" if found.index_lag else None),
        ]
    )
    shown = found.units if every else found.units[:PARTS]
    for number, unit in enumerate(shown, 1):
        _print_unit(found, unit, number)
    if more := len(found.units) - len(shown):
        say(f"\n{count(more, 'more part')} of the document came less far; --all shows them.")
    _print_floor(found)
    _print_advice(found)


def _answer(found: Explained) -> str:
    fragments = f"{count(found.fragments, 'fragment')}, {found.tokens:,} tokens"
    looked = f"{found.looked_at_again} of {count(found.candidates, 'candidate')} looked at again"
    return f"{fragments if found.fragments else 'nothing'}; {looked}"


def _print_unit(found: Explained, unit: ExplainedUnit, number: int) -> None:
    from client.domain.reason_words import reason_words

    taken = sum(1 for each in found.units if each.answer_place is not None)
    outcome = reason_words(unit.outcome, looked_at=found.looked_at_again, taken=taken, tokens=unit.tokens)
    flags = ["the query names it"] if unit.named else []
    rank = "Next best part" if number > 1 else f"Best of {len(found.units)} parts"
    say()
    prose(f"{rank if len(found.units) > 1 else 'Its only part'}: {_part(unit)}", "bold")
    facts(
        [
            ("Outcome", "; ".join([outcome, *flags])),
            ("By words", _by_words(found, unit)),
            *_where(found, unit),
            ("By meaning", _by_meaning(found, unit)),
            ("Fused", f"place {unit.fused_place} of {found.candidates}" if unit.fused_place else None),
            ("Again", _again(found, unit)),
            ("Floor", _margin(unit.floor) if unit.floor else None),
        ]
    )


def _part(unit: ExplainedUnit) -> str:
    if unit.kind == "description":
        return "its description"
    return " > ".join(unit.heading_path) or "its text before any heading"


def _by_words(found: Explained, unit: ExplainedUnit) -> str:
    if unit.bm25_rank is None:
        return "no place: none of the words is in it" if not unit.found_in else "no place yet"
    return f"place {unit.bm25_rank} of {found.units_with_words} with any of the words"


def _where(found: Explained, unit: ExplainedUnit) -> list[tuple[str, str | None]]:
    """Return which words stand where; one line a field, and one for those that are in none."""
    from client.domain.query_words import run_together

    rows: list[tuple[str, str | None]] = []
    for field, title in _FIELDS.items():
        words = [term.written for term in found.terms if field in unit.found_in.get(term.term, [])]
        rows.append((f"  in {title}", ", ".join(run_together(words)) or None))
    absent = [term.written for term in found.terms if term.term not in unit.found_in]
    rows.append(("  not in it", ", ".join(run_together(absent)) or None))
    return rows


def _by_meaning(found: Explained, unit: ExplainedUnit) -> str | None:
    if unit.dense is None:
        return None
    return f"place {unit.dense_rank} of {found.searchable_units}, cosine {unit.dense:.3f}"


def _again(found: Explained, unit: ExplainedUnit) -> str | None:
    name = (found.reranker or "").replace("_", " ")
    score = "" if unit.rerank is None else f"{name} {unit.rerank:.3f}"
    if unit.reranked:
        return f"place {unit.final_place} of {found.looked_at_again}, {score}"
    return f"not looked at; {score}" if score else "not looked at" if unit.dense is not None else None


def _margin(floor: FloorShares) -> str:
    side = "above" if floor.margin >= 0 else "below"
    return f"{gauge(floor.margin)}  {abs(floor.margin):.1f} {side}"


def _print_floor(found: Explained) -> None:
    """Compare the best part's relevance with that of the weakest fragment that was returned."""
    best = next((unit for unit in found.units if unit.floor is not None), None)
    if best is None or best.floor is None:
        return
    rows = [["this document", *_shares(best.floor)]]
    weakest = found.weakest
    if weakest is not None and best.answer_place is None:
        rows.append(["weakest returned", *_shares(weakest.floor)])
    say()
    table(["Relevance", "meaning", "again", "words", "sum", "floor", "margin"], rows, empty="")
    if weakest is not None and best.answer_place is None:
        why = ", which the query names" if weakest.named else ""
        prose(f"The weakest returned: {named(weakest.path, weakest.heading_path, weakest.unit_key)}{why}.")


def _shares(floor: FloorShares) -> list[str]:
    total = floor.needed + floor.margin
    figures = (floor.meaning, floor.reranker, floor.words, total, floor.needed)
    return [*(f"{figure:.1f}" for figure in figures), signed(floor.margin)]


def _print_advice(found: Explained) -> None:
    if not found.advice:
        return
    say("\nWhat you can do", style="bold")
    for each in found.advice:
        prose(each.text, indent="- ")
        if each.command:
            say(f"    {each.command}")

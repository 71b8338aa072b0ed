"""The verdict about a resource in one sentence, and what a person could do about it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from client.domain.analysis import holds_cjk, is_cjk
from client.domain.assembly import Reason
from client.domain.effective_memory import EffectiveResource
from client.domain.query_words import as_written, run_together
from client.domain.ranking import LIST_SIZE, Coverage, dense_list_size
from client.domain.retirement import retired_as
from client.index.explaining import Missed, Standing, UnitStanding
from shared_schema import limits
from shared_schema.explanations import Advice

_NAMED: Final = 6
"""Words that are listed; of more, the number is told."""
_WEAK: Final = (Reason.BELOW_RELEVANCE, Reason.NOT_RERANKED, Missed.NOT_A_CANDIDATE)


def sentence(standing: Standing, path: str) -> str:
    """Return the verdict."""
    outcome = standing.outcome
    if outcome is Reason.SELECTED:
        return _returned(standing, path)
    if outcome is Missed.NOT_INDEXED:
        return f"Not returned: the present text of {path} is not indexed yet."
    return f"Not returned: {_why_not(standing, standing.units[0], path)}"


def _returned(standing: Standing, path: str) -> str:
    taken = [each.candidate for each in standing.units if each.outcome is Reason.SELECTED]
    selected = standing.trace.selected
    places = sorted(selected.index(index) + 1 for index in taken if index is not None)
    fragments = "fragment" if len(places) == 1 else "fragments"
    text = f"Returned: {path} gives {fragments} {_listed(list(map(str, places)))} of {len(selected)}."
    first = standing.units[0].candidate
    named = first is not None and standing.trace.candidates[first].identity
    return f"{text} The query names it." if named else text


def _why_not(standing: Standing, best: UnitStanding, path: str) -> str:
    place = 0 if best.candidate is None else best.candidate + 1
    match best.outcome:
        case Reason.BELOW_RELEVANCE:
            short = -best.shares.margin if best.shares else 0.0
            return f"{path} came to place {place}, but is {short:.1f} below the relevance floor."
        case Reason.NOT_RERANKED:
            return (
                f"{path} came to place {best.fused_place} by words and meaning, "
                f"and only the best {standing.looked_at} were looked at again."
            )
        case Reason.TOKEN_BUDGET:
            return (
                f"{path} came to place {place}, but its {best.unit.tokens} tokens "
                f"did not fit into the {limits.FRAGMENT_TOKENS:,} of an answer any more."
            )
        case Reason.FRAGMENT_LIMIT:
            count = len(standing.trace.selected)
            return f"{path} came to place {place}, when the answer was full with {count} fragments."
        case Reason.RETIRED:
            return f"the front matter of {path} says that it no longer holds."
        case Reason.OVERLAP:
            return f"{_same_text(standing, best) or 'another document'} gave the same text as {path} already."
        case _:
            return (
                f"no part of {path} is among the best {_lists(standing)} of {standing.searchable} "
                "by words or by meaning."
            )


def _lists(standing: Standing) -> str:
    trace = standing.trace
    dense = dense_list_size(Coverage(trace.coverage, trace.foreign_coverage).least)
    return str(LIST_SIZE) if dense == LIST_SIZE else f"{LIST_SIZE} and {dense}"


def _same_text(standing: Standing, unit: UnitStanding) -> str | None:
    units = standing.trace.units
    return next((each.path for each in units if each.content_hash == unit.unit.content_hash), None)


def advice(standing: Standing, resource: EffectiveResource, query: str) -> list[Advice]:
    """Return what a person could do so that the resource is found; nothing where it was."""
    outcome, path = standing.outcome, resource.path
    if outcome is Reason.SELECTED:
        return []
    if outcome is Missed.NOT_INDEXED:
        text = "Wait for the index, which follows in the background, and ask again."
        return [Advice(text=text, command="interleaf search status")]
    if outcome is Reason.OVERLAP:
        return [Advice(text="Keep the text in one of the two documents.")]
    if outcome is Reason.TOKEN_BUDGET:
        return [Advice(text="Divide its long sections with headings: shorter parts find room.")]
    if outcome is Reason.RETIRED:
        text = f"Where it does hold, correct `status: {retired_as(resource.body)}` in its front matter."
        return [Advice(text=text), _named(path)]
    found: list[Advice] = []
    if outcome in _WEAK:
        found.append(_more_alike(standing, resource, query))
    else:
        found.append(Advice(text="Ask for less at once: a narrower question leaves room."))
    return [*found, _named(path)]


def _named(path: str) -> Advice:
    return Advice(text=f"A query that names {path} puts it first, whatever else it asks.")


def _more_alike(standing: Standing, resource: EffectiveResource, query: str) -> Advice:
    describe = f"interleaf draft edit {shlex.quote(resource.path)} --description '…'"
    texts = " ".join(each.unit.text for each in standing.units)
    if is_cjk(query) and not holds_cjk(texts):
        text = (
            "Query and document are in different scripts, so only meaning can match. "
            "A description in the query's language gives words to match."
        )
        return Advice(text=text, command=describe)
    held = {term for each in standing.units for term in each.found_in}
    absent = [term for term in standing.trace.query_terms if term not in held]
    if absent:
        words = quoted(as_written(query, absent))
        text = f"The document never uses {words}. If it answers the query, say so in its description."
        return Advice(text=text, command=describe)
    text = "It uses every word of the query. Say in its description which question it answers."
    return Advice(text=text, command=describe)


def quoted(words: Sequence[str]) -> str:
    """Return words in a sentence, each in quotation marks, the first few of many."""
    words = run_together(words)
    shown = [f'"{word}"' for word in words[:_NAMED]]
    if more := len(words) - len(shown):
        return f"{', '.join(shown)} and {more} more"
    return _listed(shown)


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"

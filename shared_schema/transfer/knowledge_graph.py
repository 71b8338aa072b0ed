"""The knowledge graph of the MCP project's reference memory server: one JSON object a line.

::

    {"type": "entity", "name": "Rollout", "entityType": "process", "observations": ["On Tuesdays."]}
    {"type": "relation", "from": "Rollout", "to": "Ada", "relationType": "owned_by"}

Every entity becomes a document with its observations as a list and its relations below them; lines
that cannot be used are named by number.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from shared_schema.transfer.documents import Candidate, Problem, Refused
from shared_schema.transfer.naming import slug, unique

_LINE_ENDS: Final = re.compile(r"\r\n|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")


class Entity(NamedTuple):
    """One entity and the line that it stands in."""

    line: int
    name: str
    kind: str
    observations: Sequence[str]


class Relation(NamedTuple):
    """One relation and the line that it stands in."""

    line: int
    source: str
    target: str
    kind: str


@dataclass
class _Graph:
    entities: dict[str, Entity] = field(default_factory=dict)
    relations: dict[Relation, None] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)


class _UnusableLineError(Exception):
    """A line that is neither an entity nor a relation; its text says why."""


def graph_candidates(source: str, content: bytes) -> Iterator[Candidate | Refused]:
    """Yield a candidate for each entity in the order of the file, and first what cannot be used."""
    graph = _Graph()
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            try:
                _read(graph, number, line)
            except _UnusableLineError as problem:
                graph.refused.append(_refused(source, number, str(problem)))
    relations: dict[str, list[Relation]] = defaultdict(list)
    for relation in graph.relations:
        if relation.source in graph.entities:
            relations[relation.source].append(relation)
        else:
            graph.refused.append(
                _refused(source, relation.line, "its relation begins at no entity of the file")
            )
    yield from sorted(graph.refused, key=lambda refused: int(refused.source.rpartition(":")[2]))
    taken: set[str] = set()
    for entity in graph.entities.values():
        path = unique(f"{slug(entity.kind, 'entity')}/{slug(entity.name, 'entity')}.md", taken)
        yield Candidate(f"{source}:{entity.line}", path, _rendered(entity, relations[entity.name]))


def _refused(source: str, line: int, why: str) -> Refused:
    return Refused(f"{source}:{line}", Problem.MALFORMED_LINE, f"Line {line}: {why}.")


def _read(graph: _Graph, number: int, line: bytes) -> None:
    record = _object(line)
    match record.get("type"):
        case "entity":
            entity = Entity(number, _text(record, "name"), _text(record, "entityType"), _observations(record))
            if entity.name in graph.entities:
                earlier = graph.entities[entity.name].line
                raise _UnusableLineError(f"an entity of this name stands in line {earlier} already")
            graph.entities[entity.name] = entity
        case "relation":
            ends = _text(record, "from"), _text(record, "to"), _text(record, "relationType")
            graph.relations.setdefault(Relation(number, *ends))
        case _:
            raise _UnusableLineError('its "type" is neither "entity" nor "relation"')


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise _UnusableLineError(f"it is not UTF-8 (at byte {error.start} of the line)") from None
    except (ValueError, RecursionError):
        raise _UnusableLineError("it is no JSON") from None
    if not isinstance(record, dict):
        raise _UnusableLineError("it is no JSON object")
    return record


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _UnusableLineError(f'its "{name}" is missing or no text')
    return value


def _observations(record: Mapping[str, Any]) -> Sequence[str]:
    value = record.get("observations")
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _UnusableLineError('its "observations" are missing or no list of texts')
    return value


def _rendered(entity: Entity, relations: Sequence[Relation]) -> str:
    lines = [f"# {_one_line(entity.name)}", "", f"Type: {_one_line(entity.kind)}"]
    listed = [_item(observation) for observation in entity.observations if observation.strip()]
    if listed:
        lines += ["", *listed]
    if relations:
        lines += ["", "## Relations", ""]
        lines += [f"- {_one_line(each.kind)}: {_one_line(each.target)}" for each in relations]
    return "\n".join(lines) + "\n"


def _item(observation: str) -> str:
    first, *rest = _LINE_ENDS.split(observation.strip())
    return "\n".join([f"- {first}", *(f"  {line}".rstrip() for line in rest)])


def _one_line(text: str) -> str:
    return " ".join(text.split())

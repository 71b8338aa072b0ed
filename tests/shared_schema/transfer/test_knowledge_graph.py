"""The reference memory server's file: entities become documents, bad lines are named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_schema.transfer.documents import Candidate, Refused
from shared_schema.transfer.knowledge_graph import graph_candidates


def entity(name: str = "Ada", kind: str = "person", *observations: str) -> str:
    record = {"type": "entity", "name": name, "entityType": kind, "observations": list(observations)}
    return json.dumps(record)


def relation(source: str, target: str, kind: str = "knows") -> str:
    return json.dumps({"type": "relation", "from": source, "to": target, "relationType": kind})


def read(*lines: str) -> tuple[list[Candidate], list[Refused]]:
    found = list(graph_candidates("memory.jsonl", "\n".join(lines).encode("utf-8", "surrogatepass")))
    return (
        [each for each in found if isinstance(each, Candidate)],
        [each for each in found if isinstance(each, Refused)],
    )


@pytest.mark.requirement("transfer.graph")
def test_an_entity_becomes_a_document_with_observations_and_relations() -> None:
    documents, refused = read(
        entity("John_Smith", "person", "Speaks fluent Spanish", "Works\nin two lines"),
        entity("Anthropic", "organization"),
        "",
        relation("John_Smith", "Anthropic", "works_at"),
        relation("John_Smith", "elsewhere", "visits"),
    )
    assert refused == []
    assert [each.path for each in documents] == ["person/john_smith.md", "organization/anthropic.md"]
    assert documents[0].content == (
        "# John_Smith\n\nType: person\n\n- Speaks fluent Spanish\n- Works\n  in two lines\n\n"
        "## Relations\n\n- works_at: Anthropic\n- visits: elsewhere\n"
    )
    assert documents[1].content == "# Anthropic\n\nType: organization\n"
    assert [each.source for each in documents] == ["memory.jsonl:1", "memory.jsonl:2"]


@pytest.mark.requirement("transfer.graph")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1]", "no JSON object"),
        ("7", "no JSON object"),
        ('{"type": "thing"}', "neither"),
        ('{"name": "x"}', "neither"),
        ('{"type": "entity", "entityType": "t", "observations": []}', '"name"'),
        ('{"type": "entity", "name": " ", "entityType": "t", "observations": []}', '"name"'),
        ('{"type": "entity", "name": "x", "observations": []}', '"entityType"'),
        ('{"type": "entity", "name": "x", "entityType": "t"}', '"observations"'),
        ('{"type": "entity", "name": "x", "entityType": "t", "observations": [1]}', '"observations"'),
        ('{"type": "relation", "from": "Ada", "to": 3, "relationType": "r"}', '"to"'),
        ('{"type": "relation", "from": "Ada", "to": "b"}', '"relationType"'),
        (relation("nobody", "Ada"), "no entity"),
        (entity("Ada"), "line 1 already"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_by_number(line: str, why: str) -> None:
    documents, refused = read(entity("Ada"), line, entity("Bob"))
    assert [each.path for each in documents] == ["person/ada.md", "person/bob.md"]
    assert [(each.source, each.code) for each in refused] == [("memory.jsonl:2", "malformed_line")]
    assert "Line 2" in refused[0].reason
    assert why in refused[0].reason


def test_a_line_that_is_no_utf8_names_its_byte() -> None:
    found = list(graph_candidates("m", b'{"a": "\xff"}'))
    assert isinstance(found[0], Refused)
    assert "byte 7" in found[0].reason


def test_names_that_make_the_same_path_are_numbered() -> None:
    documents, _ = read(entity("A b"), entity("a-b"), entity("A_B"), entity("???"), entity("!!!"))
    assert [each.path for each in documents] == [
        "person/a-b.md",
        "person/a-b-2.md",
        "person/a_b.md",
        "person/entity.md",
        "person/entity-2.md",
    ]


@given(st.binary(max_size=200))
def test_no_content_breaks_the_reader(content: bytes) -> None:
    list(graph_candidates("m", content))

"""What words and names alone decide: analysis, BM25 through Tantivy, identity."""

from __future__ import annotations

import itertools
import unicodedata

import pytest

from client.domain.assembly import Reason
from client.index.lexical import QUERY_TERMS
from tests import text_fixtures as fixtures
from tests.client.index.conftest import World, memory_of, resource, sample

# Near neighbours, so that only the words asked for tell them apart. None is about anything else.
NEIGHBOURS = {
    "port_8443": "The quote service listens on :8443 behind the balancer.",
    "port_8444": "The label service listens on :8444 behind the balancer.",
    "port_18443": "The old service listened on :18443 behind the balancer.",
    "version_123": "Fixed in v1.2.3 of the service.",
    "version_132": "Fixed in v1.3.2 of the service.",
    "version_1230": "Fixed in v1.2.30 of the service.",
    "date_0314": "On 2026-03-14 the disk of the service was full.",
    "date_0413": "On 2026-04-13 the disk of the service was full.",
    "date_0514": "On 2026-05-14 the disk of the service was full.",
    "date_1403": "On 2014-03-26 the disk of the service was full.",
    "hex_1f": "The byte 0x1F ends a record of the service.",
    "hex_2f": "The byte 0x2F ends a record of the service.",
    "limit_10000": "At most 10_000 rows of the service a batch.",
    "limit_1000": "At most 1_000 rows of the service a batch, 10 at least.",
    "grouped_26000": "At most 26,000 rows of the service a day.",
    "grouped_26": "At most 26 rows of the service a day, 000 is refused.",
    "env_quote": "Set QUOTE_CACHE_TTL_S for the service.",
    "env_label": "Set LABEL_CACHE_TTL_S for the service.",
    "env_parts": "Set the quote, the cache and the ttl for the service.",
    "camel_known": "The service reads knownHashes first.",
    "camel_expected": "The service reads expectedHash first.",
    "code_2010": "The service answers LBL-2010 then.",
    "code_2011": "The service answers LBL-2011 then.",
    "flag_dry": "Call the tool of the service with --dry-run first.",
    "flag_run": "Run the tool of the service when the paint is dry.",
    "file_named": "Rules of the service lie in rules/quote/islands.csv today.",
    "file_other": "Rules of the service lie in rules/label/islands.json today.",
    "contract": "发布之前请检查合同编号。",
    "contract_shuffled": "发布之前请检查同合号编。",
    "traditional": "發佈之前請先檢查合約編號。",
    "japanese": "リリースの前にデータベースを移行する。",
    "single": "只写一个 字 就够了。",
    "nfc": f"The {fixtures.NFC} of the service.",
    "emoji": "The 🚀 launch of the service is at noon.",
    "stop": "To be or not to be.",
}


@pytest.fixture
def neighbours(world: World) -> World:
    # Paths say nothing, so that only the text is found.
    letters = itertools.product("ghjk", "ghjkqvwxyz")
    world.index(
        memory_of(
            *(
                resource(f"mem_{name}", f"n/{first}{second}.md", f"# N\n\n{text}")
                for (name, text), (first, second) in zip(NEIGHBOURS.items(), letters, strict=False)
            )
        )
    )
    return world


def best_words(trace: object) -> list[str]:
    """Return the resources with the best BM25 score; two where two are as good."""
    scores = {each.resource_id: each.bm25 for each in trace.candidates if each.bm25_rank}  # type: ignore[attr-defined]
    best = max(scores.values(), default=0.0)
    return sorted(name for name, score in scores.items() if score > best - 1e-6)


@pytest.mark.requirement("retrieval.words.exact")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("what listens on 8443", "port_8443"),
        (":8444", "port_8444"),
        ("which service has port 18443?", "port_18443"),
        ("v1.2.3", "version_123"),
        ("was it fixed in v1.3.2?", "version_132"),
        ("V1.2.30", "version_1230"),
        ("2026-03-14", "date_0314"),
        ("the disk on 2026-04-13", "date_0413"),
        ("0x1F", "hex_1f"),
        ("0x2f", "hex_2f"),
        ("10_000", "limit_10000"),
        ("1_000 rows", "limit_1000"),
        ("26,000 rows", "grouped_26000"),
        ("QUOTE_CACHE_TTL_S", "env_quote"),
        ("label_cache_ttl_s", "env_label"),
        ("`LABEL_CACHE_TTL_S=900`", "env_label"),
        ("knownHashes", "camel_known"),
        ("known hashes", "camel_known"),
        ("expected_hash", "camel_expected"),
        ("error LBL-2010", "code_2010"),
        ("lbl-2011", "code_2011"),
        ("--dry-run", "flag_dry"),
        ("rules/quote/islands.csv", "file_named"),
        ("islands.csv", "file_named"),
        ("islands.json", "file_other"),
        ("合同编号是什么", "contract"),
        ("合約編號", "traditional"),
        ("データベースの移行", "japanese"),
        ("字", "single"),
        (fixtures.NFC, "nfc"),
        (fixtures.NFD, "nfc"),
        (fixtures.NFC.upper(), "nfc"),
        ("🚀launch🎉", "emoji"),
        ("to be or not to be", "stop"),
    ],
)
def test_words_alone_find_the_one_among_its_neighbours(neighbours: World, query: str, name: str) -> None:
    assert best_words(neighbours.search(query)) == [f"mem_{name}"]


@pytest.mark.requirement("retrieval.words.spellings")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("on 14 March 2026", "date_0314"),
        ("2026年3月14日", "date_0314"),
        ("10000", "limit_10000"),
        ("26000", "grouped_26000"),
        ("1.2.3", "version_123"),
    ],
)
def test_another_spelling_finds_the_same(neighbours: World, query: str, name: str) -> None:
    assert best_words(neighbours.search(query)) == [f"mem_{name}"]


@pytest.mark.parametrize("query", ["🚀", "…", "——", "\u200d", "，。"])
def test_a_query_without_words_has_no_list_of_words(neighbours: World, query: str) -> None:
    trace = neighbours.search(query)
    assert trace.query_terms == ()
    assert best_words(trace) == []


@pytest.mark.parametrize("before", [0, 150])
def test_of_a_long_query_the_rarest_words_are_searched_wherever_they_stand(world: World, before: int) -> None:
    common = [f"common{number}" for number in range(QUERY_TERMS + 54)]
    copies = [resource(f"mem_c{n}", f"n/c{n}.md", f"# N\n\n{' '.join(common)}") for n in range(2)]
    world.index(memory_of(*copies, resource("mem_rare", "n/r.md", "# N\n\nIt reads knownHashes.")))
    trace = world.search(" ".join([*common[:before], "knownHashes", *common[before:]]))
    assert any(each.bm25_rank for each in trace.candidates if each.resource_id == "mem_rare")


@pytest.mark.requirement("retrieval.identity")
@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("guides/queue.md", {"mem_queue"}),
        ("(guides/queue.md),", {"mem_queue"}),
        ("“guides/queue.md”。", {"mem_queue"}),
        ("读一下 guides/queue.md，再回答", {"mem_queue"}),
        ("compare guides/queue.md and guides/release.md!", {"mem_queue", "mem_release"}),
        ("guides/queue", set()),
        ("queue.md", set()),
        ("guides/queue.md.bak", set()),
        ("old-guides/queue.md", set()),
        ("a queue of messages", set()),
    ],
)
def test_only_a_whole_path_names_a_resource(world: World, query: str, named: set[str]) -> None:
    world.index(sample())
    assert {each.resource_id for each in world.search(query).candidates if each.identity} == named


@pytest.mark.requirement("retrieval.identity")
@pytest.mark.parametrize("path", sorted(fixtures.PATHS.keys() - {"plain"}))
def test_a_path_of_every_kind_is_known_by_itself(world: World, path: str) -> None:
    world.index(memory_of(*sample().resources, resource("mem_x", fixtures.PATHS[path], "# X\n\nnothing")))
    trace = world.search(unicodedata.normalize("NFD", fixtures.PATHS[path]))
    assert trace.candidates[0].resource_id == "mem_x"
    assert trace.candidates[0].identity


@pytest.mark.requirement("retrieval.identity.attached")
@pytest.mark.parametrize("query", ["请看指南/发布流程.md的内容", "指南/发布流程.md:12", "./指南/发布流程.md"])
def test_a_path_that_something_is_attached_to_still_names_its_resource(world: World, query: str) -> None:
    world.index(memory_of(*sample().resources, resource("mem_x", "指南/发布流程.md", "# X\n\n别的")))
    assert [each.resource_id for each in world.search(query).candidates if each.identity] == ["mem_x"]


OLD = "---\nstatus: superseded\n---\n# Broker\n\nScans go through RabbitMQ, the message broker of the depots."
NEW = "# Broker now\n\nScans travel through Kafka, the message broker of the depots."


@pytest.mark.requirement("retrieval.retired")
def test_a_document_that_no_longer_holds_is_behind_all_others_and_returned_only_by_name(world: World) -> None:
    memory = memory_of(resource("mem_a", "adr/0008.md", OLD), resource("mem_b", "adr/0015.md", NEW))
    world.index(memory)
    trace = world.search("RabbitMQ, do scans go through the message broker?")
    assert max(trace.candidates, key=lambda each: each.final or 0.0).unit.path == "adr/0008.md"
    assert [unit.path for unit in trace.units] == ["adr/0015.md"]
    assert [(each.unit.path, each.reason) for each in trace.candidates] == [
        ("adr/0015.md", Reason.SELECTED),
        *[("adr/0008.md", Reason.RETIRED)] * 2,
    ]
    named = world.search("what did adr/0008.md say of the broker")
    assert named.units[0].path == "adr/0008.md"


@pytest.mark.requirement("retrieval.retired")
def test_an_edit_that_takes_a_document_out_of_use_holds_before_it_is_indexed(world: World) -> None:
    before = memory_of(resource("mem_a", "adr/0008.md", OLD.replace("superseded", "active")))
    world.index(before)
    assert world.search("message broker of the depots").units
    after = memory_of(resource("mem_a", "adr/0008.md", OLD, draft=True))
    assert not world.search("message broker of the depots", after).units

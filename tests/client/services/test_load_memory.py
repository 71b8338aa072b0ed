from __future__ import annotations

import unicodedata

import pytest

from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import OrgSource, Provenance, Scope
from shared_schema.rules.hashing import content_hash
from shared_schema.tool_contract import Load, OpenDraft
from tests.client.local_world import COMMIT, ORG_COMMIT, OWN, PROJECT, REFERENCE, LocalWorld, published
from tests.text_fixtures import BODIES


@pytest.mark.requirement("load.complete")
def test_a_load_returns_every_field_of_a_resource(world: LocalWorld) -> None:
    [loaded] = world.load(PROJECT, Load(ids=["mem_ref"])).resources

    assert loaded.model_dump() == {
        "resource_id": "mem_ref",
        "scope": Scope.ORG,
        "kind": "memory",
        "path": "ref.md",
        "title": "Reference",
        "description": "org",
        "content_hash": content_hash(REFERENCE.body),
        "changed": True,
        "provenance": Provenance.AUTHORITY,
        "org_source": {"resource_id": "mem_ref", "commit_id": ORG_COMMIT},
        "draft": None,
        "content": REFERENCE.body,
    }


@pytest.mark.requirement("load.order")
def test_a_load_answers_in_the_order_of_the_request_and_each_resource_once(world: LocalWorld) -> None:
    answer = world.load(PROJECT, Load(ids=["ref.md", "mem_own", "mem_ref", "own.md"]))
    assert [item.resource_id for item in answer.resources] == ["mem_ref", "mem_own"]


@pytest.mark.requirement("load.known_hashes")
@pytest.mark.parametrize("key", ["own.md", "mem_own"])
def test_a_text_that_the_reader_has_already_is_left_out(world: LocalWorld, key: str) -> None:
    answer = world.load(PROJECT, Load(ids=["own.md"], knownHashes={key: OWN.content_hash}))
    assert (answer.resources[0].changed, answer.resources[0].content) == (False, None)


@pytest.mark.requirement("load.known_hashes")
def test_the_hash_by_the_requested_key_goes_before_the_one_by_id(world: LocalWorld) -> None:
    known = {"own.md": content_hash("older"), "mem_own": OWN.content_hash}
    assert world.load(PROJECT, Load(ids=["own.md"], knownHashes=known)).resources[0].changed is True
    assert world.load(PROJECT, Load(ids=["mem_own"], knownHashes=known)).resources[0].changed is False


@pytest.mark.requirement("load.draft")
def test_a_draft_is_loaded_in_place_of_what_is_published(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "BETA")

    [loaded] = world.load(PROJECT, Load(ids=["own.md"])).resources

    assert (loaded.content, loaded.content_hash) == ("# Own\n\nalpha BETA gamma\n", edited.content_hash)
    assert loaded.provenance is Provenance.DRAFT
    assert loaded.draft == OpenDraft(
        draft_id=edited.draft_id, freshness=Freshness.CURRENT, reconciliation=Reconciliation.UNKNOWN
    )
    world.publish([OWN, REFERENCE], commit="c2", seq=2)
    [later] = world.load(PROJECT, Load(ids=["own.md"])).resources
    assert later.draft is not None
    assert later.draft.freshness is Freshness.BEHIND


@pytest.mark.requirement("load.missing")
def test_one_missing_target_fails_the_load_and_all_missing_ones_are_named(world: LocalWorld) -> None:
    world.create("guides/release.md")

    with pytest.raises(InterleafError) as refused:
        world.load(PROJECT, Load(ids=["mem_own", "guides/relase.md", "mem_none", "zzz"]))

    assert refused.value.code is ErrorCode.MEMORY_RESOURCE_NOT_FOUND
    assert refused.value.details == {
        "missing": ["guides/relase.md", "mem_none", "zzz"],
        "suggestions": {"guides/relase.md": ["guides/release.md"], "mem_none": [], "zzz": []},
    }


@pytest.mark.requirement("store.adaptation.hides")
def test_several_hidden_org_ids_are_mapped_to_their_adaptations(world: LocalWorld) -> None:
    second = published("mem_ref2", "ref2.md", scope=Scope.ORG)
    world.publish([OWN, REFERENCE, second], commit="c2", seq=2)
    first_id = world.update("mem_ref", "beta", "BETA").resource_id
    second_id = world.rename("mem_ref2", "moved.md").resource_id

    with pytest.raises(InterleafError) as refused:
        world.load(PROJECT, Load(ids=["mem_ref", "mem_ref2"]))

    assert refused.value.details["adapted"] == {"mem_ref": first_id, "mem_ref2": second_id}
    assert "adapted_by" not in refused.value.details


@pytest.mark.requirement("store.adaptation.hides")
def test_a_published_adaptation_is_named_even_when_its_source_is_not_here_any_more(
    world: LocalWorld,
) -> None:
    source = OrgSource(resource_id="mem_gone", commit_id=ORG_COMMIT)
    world.publish([published("mem_new", "new.md", org_source=source)], commit=COMMIT, seq=2)

    with pytest.raises(InterleafError) as refused:
        world.load(PROJECT, Load(ids=["mem_gone"]))

    assert refused.value.details["adapted_by"] == "mem_new"


@pytest.mark.requirement("load.path_nfc")
def test_a_path_is_found_in_any_normal_form_but_in_its_own_letter_case(world: LocalWorld) -> None:
    created = world.create("Überblick.md")

    decomposed = unicodedata.normalize("NFD", "Überblick.md")
    assert world.load(PROJECT, Load(ids=[decomposed])).resources[0].resource_id == created.resource_id
    with pytest.raises(InterleafError) as refused:
        world.load(PROJECT, Load(ids=["überblick.md"]))
    assert refused.value.details["suggestions"] == {"überblick.md": ["Überblick.md"]}


@pytest.mark.requirement("load.bytes")
def test_every_text_is_loaded_byte_for_byte_as_it_was_stored(world: LocalWorld) -> None:
    for number, body in enumerate(BODIES.values()):
        created = world.create(f"texts/{number}.md", body)
        [loaded] = world.load(PROJECT, Load(ids=[created.resource_id])).resources
        assert loaded.content == body
        assert loaded.content_hash == content_hash(body) == created.content_hash

"""Freshness and reconciliation of a Draft as two answers."""

import pytest

from org_server.domain.reconciliation import Standing, judge, texts_needed
from org_server.domain.states import GONE, HashedState
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.memory import OrgSource, ResourceState

TEXTS: dict[str, str] = {}


def state(body: str, path: str = "a.md") -> HashedState:
    hashed = HashedState.of(ResourceState(exists=True, path=path, body=body))
    assert hashed.content_hash is not None
    TEXTS[hashed.content_hash] = body
    return hashed


BASE = state("one\ntwo\nthree\nfour\n")
MINE = state("ONE\ntwo\nthree\nfour\n")
THEIRS = state("one\ntwo\nthree\nFOUR\n")
CLASHING = state("uno\ntwo\nthree\nfour\n")
CLEAN, CONFLICTS = Reconciliation.CLEAN, Reconciliation.CONFLICTS


@pytest.mark.requirement("draft.dimensions")
@pytest.mark.parametrize(
    ("behind", "base", "current", "draft", "holder", "expected"),
    [
        (False, BASE, BASE, MINE, None, Standing(Freshness.CURRENT, Reconciliation.UNKNOWN, False)),
        (True, BASE, BASE, MINE, None, Standing(Freshness.BEHIND, CLEAN, False)),
        (True, BASE, BASE, MINE, "mem_2", Standing(Freshness.BEHIND, CONFLICTS, False, ("path_occupied",))),
        (True, BASE, BASE, GONE, "mem_2", Standing(Freshness.BEHIND, CLEAN, False)),
        (True, BASE, THEIRS, MINE, None, Standing(Freshness.BEHIND, CLEAN, True)),
        (True, BASE, CLASHING, MINE, None, Standing(Freshness.BEHIND, CONFLICTS, True, ("content",))),
        (True, BASE, GONE, MINE, None, Standing(Freshness.BEHIND, CONFLICTS, True, ("existence",))),
        (True, BASE, THEIRS, MINE, "mem_2", Standing(Freshness.BEHIND, CONFLICTS, True, ("path_occupied",))),
    ],
)
def test_being_behind_and_having_conflicts_are_separate(
    behind: bool,
    base: HashedState,
    current: HashedState,
    draft: HashedState,
    holder: str | None,
    expected: Standing,
) -> None:
    assert judge(behind, base, current, draft, TEXTS, lambda _path: holder) == expected


def test_no_text_is_read_unless_the_own_resource_moved() -> None:
    assert texts_needed(BASE, BASE, MINE) == set()
    assert texts_needed(BASE, THEIRS, MINE) == {BASE.content_hash, THEIRS.content_hash, MINE.content_hash}
    assert texts_needed(BASE, GONE, MINE) == {BASE.content_hash, MINE.content_hash}


def test_hashed_states_survive_json_and_give_the_state_back() -> None:
    source = OrgSource(resource_id="mem_s", commit_id="c" * 64)
    full = ResourceState(exists=True, path="a.md", description="d", body="text", org_source=source)
    hashed = HashedState.of(full)
    assert HashedState.from_json(hashed.as_json()) == hashed
    assert hashed.with_body({hashed.content_hash or "": "text"}) == full
    assert HashedState.from_json(GONE.as_json()) == GONE
    assert HashedState.of(ResourceState(exists=False, path="left over")) == GONE
    assert GONE.with_body({}) == ResourceState(exists=False)

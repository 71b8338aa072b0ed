from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.domain.case_corpus import FrozenDocument, corpus_digest
from client.domain.case_judgment import (
    ContradictionError,
    Evidence,
    Judgment,
    JudgmentChange,
    JudgmentKind,
    changed,
)
from client.domain.effective_memory import DraftRef, EffectiveMemory, EffectiveResource
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.memory import OrgSource, Provenance, Scope
from shared_schema.rules.hashing import content_hash

A, B = Evidence("mem_a", None, 2), Evidence("mem_b", None, 3)
UNIT = Evidence("mem_a", "mem_a/release/0/0", 3)


def said(*evidence: Evidence, forbid: tuple[str, ...] = (), none: bool = False) -> JudgmentChange:
    return JudgmentChange(evidence, forbid, none)


@pytest.mark.requirement("eval.case.judgment")
@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (Judgment(), said(A), Judgment((A,))),
        (Judgment((A,)), said(B), Judgment((A, B))),
        (Judgment((A, B)), said(replace(A, grade=1)), Judgment((replace(A, grade=1), B))),
        (Judgment((A, B)), said(replace(A, grade=0)), Judgment((B,))),
        (Judgment((A, UNIT)), said(replace(UNIT, grade=0)), Judgment((A,))),
        (Judgment((A, UNIT)), said(replace(A, grade=0)), Judgment()),
        (Judgment((A,)), said(replace(A, grade=0), UNIT), Judgment((UNIT,))),
        (Judgment((A, UNIT)), said(forbid=("mem_a",)), Judgment((), ("mem_a",))),
        (Judgment((), ("mem_a", "mem_b")), said(UNIT), Judgment((UNIT,), ("mem_b",))),
        (Judgment((), ("mem_a",)), said(replace(A, grade=0)), Judgment()),
        (Judgment((A,), ("mem_c",)), said(none=True), Judgment((), ("mem_c",), True)),
        (Judgment((), (), True), said(A), Judgment((A,))),
        (Judgment((), (), True), said(forbid=("mem_a",)), Judgment((), ("mem_a",), True)),
        (Judgment((A,), ("mem_c",)), JudgmentChange((B,), replace=True), Judgment((B,))),
        (Judgment((A,), ("mem_c",)), JudgmentChange(replace=True), Judgment()),
    ],
)
def test_what_is_newly_said_holds_and_the_rest_stays(
    before: Judgment, change: JudgmentChange, after: Judgment
) -> None:
    assert changed(before, change) == after
    assert changed(after, replace(change, replace=False)) == after, "said twice is said once"


@pytest.mark.requirement("eval.case.judgment")
@pytest.mark.parametrize(
    "change",
    [
        said(A, replace(A, grade=1)),
        said(A, forbid=("mem_a",)),
        said(UNIT, forbid=("mem_a",)),
        said(A, none=True),
    ],
)
def test_a_change_that_contradicts_itself_is_refused(change: JudgmentChange) -> None:
    with pytest.raises(ContradictionError):
        changed(Judgment((B,)), change)


@pytest.mark.requirement("eval.case.judgment")
@pytest.mark.parametrize(
    ("judgment", "kind"),
    [
        (Judgment(), JudgmentKind.UNJUDGED),
        (Judgment((A,), ("mem_c",)), JudgmentKind.GRADED),
        (Judgment((), ("mem_c",)), JudgmentKind.FORBIDDEN_ONLY),
        (Judgment((), ("mem_c",), True), JudgmentKind.NONE_MATCHED),
    ],
)
def test_a_judgment_is_of_one_kind(judgment: Judgment, kind: JudgmentKind) -> None:
    assert judgment.kind is kind


_RESOURCES = st.sampled_from(["mem_a", "mem_b", "mem_c"])
_EVIDENCE = st.builds(
    lambda resource, part, grade: Evidence(resource, part and f"{resource}/{part}/0/0", grade),
    _RESOURCES,
    st.sampled_from([None, "one", "two"]),
    st.integers(0, 3),
)
_CHANGES = st.builds(
    JudgmentChange,
    st.lists(_EVIDENCE, max_size=4).map(tuple),
    st.lists(_RESOURCES, max_size=2, unique=True).map(tuple),
    st.booleans(),
    st.booleans(),
)


@pytest.mark.requirement("eval.case.judgment")
@given(st.lists(_CHANGES, max_size=6))
def test_no_judgment_contradicts_itself(changes: list[JudgmentChange]) -> None:
    judgment = Judgment()
    for change in changes:
        try:
            judgment = changed(judgment, change)
        except ContradictionError:
            continue
        assert not {each.resource_id for each in judgment.evidence}.intersection(judgment.forbidden)
        assert not (judgment.none_matched and judgment.evidence)
        assert all(1 <= each.grade <= 3 for each in judgment.evidence)
        assert len(judgment.grades) == len(judgment.evidence)


RESOURCE = EffectiveResource(
    resource_id="mem_a",
    scope=Scope.PROJECT,
    path="a.md",
    title="A",
    description="of a",
    body="# A\n",
    content_hash=content_hash("# A\n"),
    provenance=Provenance.DRAFT,
    org_source=OrgSource(resource_id="mem_o", commit_id="o1"),
    draft=DraftRef("drf_1", Freshness.CURRENT, Reconciliation.UNKNOWN),
)
CHANGES: dict[str, object] = {
    "resource_id": "mem_b",
    "scope": Scope.ORG,
    "path": "b.md",
    "title": "B",
    "description": "",
    "content_hash": content_hash("# B\n"),
    "provenance": Provenance.AUTHORITY,
    "org_source": None,
    "draft": DraftRef("drf_1", Freshness.BEHIND, Reconciliation.UNKNOWN),
}


@pytest.mark.requirement("eval.case.frozen")
def test_a_frozen_document_is_the_resource_again() -> None:
    frozen = FrozenDocument.of(RESOURCE)
    assert frozen.with_text(RESOURCE.body) == RESOURCE
    memory = EffectiveMemory.of("prj_1", "c1", [RESOURCE])
    assert EffectiveMemory.of("prj_1", "c1", [frozen.with_text(RESOURCE.body)]).hash == memory.hash


@pytest.mark.requirement("eval.case.frozen")
@pytest.mark.parametrize("name", CHANGES)
def test_whatever_a_reader_could_see_makes_another_document(name: str) -> None:
    other = replace(RESOURCE, **{name: CHANGES[name]})  # type: ignore[arg-type]
    assert FrozenDocument.of(other).digest != FrozenDocument.of(RESOURCE).digest


def test_a_corpus_is_a_set_of_documents() -> None:
    assert corpus_digest(["b", "a"]) == corpus_digest(["a", "b"]) != corpus_digest(["a"])

"""Which Org references a Project shows, and that a source is adapted once."""

from itertools import product

import pytest

from org_server.domain.adaptations import link_adaptations, reference_changes


@pytest.mark.requirement("adaptation.hides_source")
@pytest.mark.parametrize(
    ("selected", "published", "adapted", "shown"), list(product((False, True), repeat=4))
)
def test_a_reference_is_shown_exactly_when_selected_published_and_not_adapted(
    selected: bool, published: bool, adapted: bool, shown: bool
) -> None:
    def only(condition: bool) -> set[str]:
        return {"mem_s"} if condition else set()

    changes = reference_changes(
        ["mem_s"],
        selected=only(selected),
        published=only(published),
        adapted=only(adapted),
        shown=only(shown),
    )
    visible_after = (shown or changes.show == ["mem_s"]) and changes.hide != ["mem_s"]
    assert visible_after == (selected and published and not adapted)
    assert not (changes.show and changes.hide)
    if visible_after == shown:
        assert changes == ([], [])


@pytest.mark.requirement("adaptation.one_per_source")
@pytest.mark.parametrize(
    ("active", "changed", "expected", "rivals"),
    [
        ({}, {"mem_a": "src"}, {"src": "mem_a"}, {}),
        ({"src": "mem_a"}, {"mem_a": "src"}, {"src": "mem_a"}, {}),
        ({"src": "mem_a"}, {"mem_a": None}, {}, {}),
        ({"src": "mem_a"}, {"mem_b": "src"}, {"src": "mem_a"}, {"mem_b": "mem_a"}),
        ({"src": "mem_a"}, {"mem_a": None, "mem_b": "src"}, {"src": "mem_b"}, {}),
        ({}, {"mem_a": "src", "mem_b": "src"}, {"src": "mem_a"}, {"mem_b": "mem_a"}),
        ({"other": "mem_c"}, {"mem_a": None}, {"other": "mem_c"}, {}),
    ],
)
def test_a_source_has_at_most_one_adaptation(
    active: dict[str, str], changed: dict[str, str | None], expected: dict[str, str], rivals: dict[str, str]
) -> None:
    links = link_adaptations(active, changed)
    assert links.active == expected
    assert links.rivals == rivals

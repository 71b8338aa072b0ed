"""Offering a Draft to the Organization from the command line, against the real server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import typer

from client.cli.contributing import offers
from shared_schema.daemon_contract import Offer
from tests.client.cli.terminal import Terminal
from tests.org_server.harness import Published, Server
from tests.org_server.people import Person


@pytest.mark.requirement("cli.contribute")
@pytest.mark.parametrize(
    ("text", "offer"),
    [
        ("drf_1", Offer(draft="drf_1")),
        ("guides/a.md=shared/a.md", Offer(draft="guides/a.md", path="shared/a.md")),
        ("drf_1=shared/a=b.md", Offer(draft="drf_1", path="shared/a=b.md")),
        ("drf_1=mem_1", Offer(draft="drf_1", target_id="mem_1")),
    ],
)
def test_an_offer_is_read_as_it_is_typed(text: str, offer: Offer) -> None:
    assert offers([text]) == [offer]
    assert offers(None) == []


@pytest.mark.requirement("cli.contribute")
@pytest.mark.parametrize("text", ["", "=a.md", "a.md="])
def test_half_an_offer_is_a_wrong_call(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        offers([text])


@pytest.mark.requirement("cli.contribute")
def test_a_failed_contribution_is_shown_and_tried_again(
    org: Server, terminal_of: Callable[..., Terminal]
) -> None:
    project_id = org.project(org.ada, "Rocket")
    taken = Published("guides/a.md")
    org.publish(org.org_id, taken)
    person = Person(org, org.ada)
    draft = person.create(project_id, "guides/a.md", "ours\n")
    opened = person.submit(draft, org_contribution=[{"draft_id": draft.draft_id, "path": "guides/a.md"}])
    name = opened["review"]["review_id"]
    ada = terminal_of(org.ada)
    assert f"follows the merge, of {draft.draft_id} as guides/a.md" in _plain(
        ada.text("review", "show", name)
    )
    error = ada.error("review", "contribute", name)
    assert error["code"] == "review_not_approved"
    assert f"interleaf review show {name}" in ada.text("review", "merge", name)
    failed = _plain(ada.text("review", "show", name))
    assert "failed: The Organization has another resource" in failed
    assert f"interleaf review contribute {name}" in failed
    assert ada.error("review", "contribute", name)["code"] == "path_occupied"
    person.publish(person.remove(project_id, taken.resource_id, scope="org"))
    made = ada.json("review", "contribute", name)
    assert made["contribution_of"] == name
    org_review = made["review"]["review_id"]
    assert org_review in ada.text("review", "contribute", name)
    assert f"Review {org_review}" in _plain(ada.text("review", "show", name))
    assert name in ada.text("review", "show", org_review)
    assert ada.json("review", "show", name)["contribution_review_id"] == org_review


def _plain(text: str) -> str:
    """Return the words of a table whose cells are folded."""
    return " ".join(text.split())

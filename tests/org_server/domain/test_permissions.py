from __future__ import annotations

import pytest

from org_server.domain.permissions import PROJECT_ACTIONS, Action, Actor, allows, capabilities, require
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import Role

OWNER, ADMIN, MEMBER = Role.OWNER, Role.ADMIN, Role.MEMBER
NOBODY = None

# Org role, then Project role (None: no member), as the columns of the table.
COLUMNS: list[tuple[Role, Role | None]] = [
    (MEMBER, NOBODY),
    (MEMBER, MEMBER),
    (MEMBER, ADMIN),
    (MEMBER, OWNER),
    (ADMIN, NOBODY),
    (ADMIN, MEMBER),
    (OWNER, NOBODY),
    (OWNER, MEMBER),
]
# One sign a column: + allowed, x refused although visible, . invisible.
TABLE = {
    #                               Org: m m m m a a o o
    #                           Project: - m a o - m - m
    Action.ORG_MEMORY_READ: "++++++++",
    Action.PROJECT_CREATE: "++++++++",
    Action.PROJECT_READ: ".+++++++",
    Action.REVIEW_READ: ".+++++++",
    Action.REVIEW_COMMENT: ".+++++++",
    Action.DRAFT_WRITE: ".+++x+x+",
    Action.PROJECT_REVIEW_DECIDE: ".x++++++",
    Action.PROJECT_MANAGE: ".x++++++",
    Action.PROJECT_OWNERS_MANAGE: ".xx+++++",
    Action.PROJECT_DELETE: ".xx+++++",
    Action.ORG_REVIEW_DECIDE: "xxxx++++",
    Action.ORG_MANAGE: "xxxx++++",
    Action.ORG_OWNERS_MANAGE: "xxxxxx++",
}
READS = {Action.ORG_MEMORY_READ, Action.PROJECT_READ, Action.REVIEW_READ}
WHOLE_ORG = {Action.PROJECT_CREATE, Action.ORG_REVIEW_DECIDE, Action.ORG_MANAGE, Action.ORG_OWNERS_MANAGE}


def actor(role: Role, *, read_only: bool = False, project_ids: frozenset[str] | None = None) -> Actor:
    return Actor("usr_1", "ada@example.org", role, "tok_1", read_only, project_ids)


def outcome(caller: Actor, action: Action, project_role: Role | None) -> str:
    project = "prj_1" if action in PROJECT_ACTIONS else None
    try:
        require(caller, action, project_id=project, project_role=project_role)
    except InterleafError as error:
        return {ErrorCode.NOT_FOUND: ".", ErrorCode.FORBIDDEN: "x"}[error.code]
    return "+"


@pytest.mark.requirement("server.permissions.matrix")
def test_the_table_covers_every_action() -> None:
    assert set(TABLE) == set(Action)


@pytest.mark.requirement("server.permissions.matrix")
@pytest.mark.parametrize("action", list(Action))
def test_every_role_may_do_exactly_what_the_table_says(action: Action) -> None:
    found = "".join(outcome(actor(org), action, project) for org, project in COLUMNS)
    assert found == TABLE[action]


@pytest.mark.requirement("server.permissions.read_only_token")
@pytest.mark.parametrize("action", list(Action))
def test_a_read_only_token_reads_what_its_user_reads_and_writes_nothing(action: Action) -> None:
    for sign, (org, project) in zip(TABLE[action], COLUMNS, strict=True):
        found = outcome(actor(org, read_only=True), action, project)
        expected = sign if action in READS or sign == "." else "x"
        assert found == expected, (org, project)


@pytest.mark.requirement("server.permissions.limited_token")
@pytest.mark.parametrize("action", list(Action))
def test_a_token_limited_to_another_project_does_not_see_this_one(action: Action) -> None:
    for sign, (org, project) in zip(TABLE[action], COLUMNS, strict=True):
        found = outcome(actor(org, project_ids=frozenset({"prj_2"})), action, project)
        if action in PROJECT_ACTIONS:
            assert found == ".", (org, project)
        else:
            assert found == ("x" if action in WHOLE_ORG else sign), (org, project)


@pytest.mark.parametrize("action", sorted(PROJECT_ACTIONS))
def test_a_token_limited_to_this_project_may_do_there_what_its_user_may(action: Action) -> None:
    limited = "".join(
        outcome(actor(org, project_ids=frozenset({"prj_1"})), action, project) for org, project in COLUMNS
    )
    assert limited == TABLE[action]


def test_an_org_review_of_an_invisible_project_is_not_found_before_it_is_forbidden() -> None:
    with pytest.raises(InterleafError) as refused:
        require(actor(MEMBER), Action.ORG_REVIEW_DECIDE, project_id="prj_1", project_role=None)
    assert refused.value.code is ErrorCode.NOT_FOUND


def test_an_action_on_a_project_cannot_be_asked_without_one() -> None:
    with pytest.raises(ValueError, match="about a Project"):
        require(actor(OWNER), Action.PROJECT_MANAGE)


@pytest.mark.parametrize("role", list(Role))
def test_capabilities_are_what_holds_in_every_project(role: Role) -> None:
    assert capabilities(actor(role)) == sorted(
        action.value for action in Action if allows(action, role, None)
    )


def test_capabilities_shrink_with_the_token() -> None:
    assert capabilities(actor(OWNER, read_only=True)) == ["org_memory.read", "project.read", "review.read"]
    assert "org.manage" not in capabilities(actor(OWNER, project_ids=frozenset({"prj_1"})))

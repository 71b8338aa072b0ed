"""Who may do what: one table, and one function that answers from it.

What a caller may not see does not exist for it (``not_found``); what it sees but may not do is
``forbidden``. The table is asked inside the transaction of the effect, with the roles read there.

==========================  ==========  ==============  ====================  ================
action                      Org member  Project member  Project owner, admin  Org owner, admin
==========================  ==========  ==============  ====================  ================
read Org Memory             yes         yes             yes                   yes
create a Project            yes         yes             yes                   yes
read a Project              no          yes             yes                   yes
read and comment a Review   no          yes             yes                   yes
write own Drafts, submit    no          yes             yes                   as Project member
decide a Project Review     no          no              yes                   yes
selection, members, policy  no          no              yes                   yes
give or take ownership      no          no              owner                 yes
delete a Project            no          no              owner                 yes
decide an Org Review        no          no              no                    yes
users, tokens, audit        no          no              no                    yes
Org owners and theirs       no          no              no                    owner
==========================  ==========  ==============  ====================  ================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import Role


class Action(StrEnum):
    """Everything that is permitted or not; the values are the capabilities of ``GET /me``."""

    ORG_MEMORY_READ = "org_memory.read"
    PROJECT_CREATE = "project.create"
    PROJECT_READ = "project.read"
    REVIEW_READ = "review.read"
    REVIEW_COMMENT = "review.comment"
    DRAFT_WRITE = "draft.write"
    PROJECT_REVIEW_DECIDE = "project_review.merge"
    PROJECT_MANAGE = "project.manage"
    PROJECT_OWNERS_MANAGE = "project.owners.manage"
    PROJECT_DELETE = "project.delete"
    ORG_REVIEW_DECIDE = "org_review.merge"
    ORG_MANAGE = "org.manage"
    ORG_OWNERS_MANAGE = "org.owners.manage"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks, and how far the token that was used reaches."""

    user_id: str
    email: str
    org_role: Role
    token_id: str
    read_only: bool = False
    project_ids: frozenset[str] | None = None
    """The only Projects that the token reaches; None: all of the user's."""

    def reaches(self, project_id: str) -> bool:
        """Tell whether the token is good for this Project."""
        return self.project_ids is None or project_id in self.project_ids


@dataclass(frozen=True, slots=True)
class _Rule:
    org: frozenset[Role]
    """Org roles that suffice, whatever the Project role."""
    project: frozenset[Role]
    """Project roles that suffice, whatever the Org role."""
    writes: bool = True
    whole_org: bool = False
    """Reaches beyond one Project, so a token limited to Projects cannot do it."""


_ALL: Final = frozenset(Role)
_ADMINS: Final = frozenset({Role.OWNER, Role.ADMIN})
_OWNERS: Final = frozenset({Role.OWNER})
_NONE: Final[frozenset[Role]] = frozenset()

_RULES: Final[Mapping[Action, _Rule]] = {
    Action.ORG_MEMORY_READ: _Rule(_ALL, _ALL, writes=False),
    Action.PROJECT_CREATE: _Rule(_ALL, _ALL, whole_org=True),
    Action.PROJECT_READ: _Rule(_ADMINS, _ALL, writes=False),
    Action.REVIEW_READ: _Rule(_ADMINS, _ALL, writes=False),
    Action.REVIEW_COMMENT: _Rule(_ADMINS, _ALL),
    Action.DRAFT_WRITE: _Rule(_NONE, _ALL),
    Action.PROJECT_REVIEW_DECIDE: _Rule(_ADMINS, _ADMINS),
    Action.PROJECT_MANAGE: _Rule(_ADMINS, _ADMINS),
    Action.PROJECT_OWNERS_MANAGE: _Rule(_ADMINS, _OWNERS),
    Action.PROJECT_DELETE: _Rule(_ADMINS, _OWNERS),
    Action.ORG_REVIEW_DECIDE: _Rule(_ADMINS, _NONE, whole_org=True),
    Action.ORG_MANAGE: _Rule(_ADMINS, _NONE, whole_org=True),
    Action.ORG_OWNERS_MANAGE: _Rule(_OWNERS, _NONE, whole_org=True),
}

PROJECT_ACTIONS: Final = frozenset(Action) - {
    Action.ORG_MEMORY_READ,
    Action.PROJECT_CREATE,
    Action.ORG_REVIEW_DECIDE,
    Action.ORG_MANAGE,
    Action.ORG_OWNERS_MANAGE,
}
"""Those that are about one Project."""


def allows(action: Action, org_role: Role, project_role: Role | None = None) -> bool:
    """Tell whether the roles suffice; the token's limits are not looked at."""
    rule = _RULES[action]
    return org_role in rule.org or (project_role is not None and project_role in rule.project)


def sees_project(actor: Actor, project_id: str, project_role: Role | None) -> bool:
    """Tell whether the Project exists for this caller."""
    return actor.reaches(project_id) and allows(Action.PROJECT_READ, actor.org_role, project_role)


def require(
    actor: Actor, action: Action, *, project_id: str | None = None, project_role: Role | None = None
) -> None:
    """Raise ``not_found`` or ``forbidden`` unless the caller may do ``action``.

    Actions about one Project need ``project_id``, and ``project_role`` as read in the transaction
    (None: no member). An Org Review is carried by a Project too: give it, so that its invisibility
    comes first.
    """
    if project_id is None and action in PROJECT_ACTIONS:
        raise ValueError(f"{action} is about a Project")
    if project_id is not None and not sees_project(actor, project_id, project_role):
        raise InterleafError(ErrorCode.NOT_FOUND, "There is no such Project, or it is not yours to see.")
    rule = _RULES[action]
    if rule.writes and actor.read_only:
        raise InterleafError(
            ErrorCode.FORBIDDEN,
            "This token may only read. Use one that may write.",
            details={"action": action},
        )
    if rule.whole_org and actor.project_ids is not None:
        raise InterleafError(
            ErrorCode.FORBIDDEN,
            "This token is limited to some Projects, and this reaches the whole Organization. "
            "Use a token without that limit.",
            details={"action": action},
        )
    if not allows(action, actor.org_role, project_role):
        raise InterleafError(
            ErrorCode.FORBIDDEN,
            f"Your role does not allow this ({action}). Ask somebody with the needed role.",
            details={"action": action},
        )


def capabilities(actor: Actor) -> list[str]:
    """Return what the caller may do in the Organization, whatever the Project, sorted."""
    held = []
    for action in sorted(Action):
        rule = _RULES[action]
        if actor.org_role not in rule.org:
            continue
        if (rule.writes and actor.read_only) or (rule.whole_org and actor.project_ids is not None):
            continue
        held.append(action.value)
    return held

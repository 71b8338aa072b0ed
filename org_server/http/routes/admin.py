"""Users, tokens, policy and audit of the Organization."""

from __future__ import annotations

from pydantic import Field

from org_server.http.openapi import Answer, Call, RouteTable
from org_server.services import organization, tokens, users
from org_server.services.pages import PageQuery
from shared_schema import limits
from shared_schema.org_contract import (
    AuditPage,
    Policy,
    PolicyAnswer,
    TokenCreate,
    TokenIssued,
    TokenPage,
    User,
    UserChange,
    UserCreate,
    UserPage,
)

routes = RouteTable()


class TokenQuery(PageQuery):
    """The query of GET /admin/tokens."""

    user: str | None = Field(default=None, min_length=1, max_length=limits.IDENTIFIER_CHARACTERS)
    """A user's id or e-mail address."""


@routes.route(
    "GET", "/admin/users", query=PageQuery, answer=UserPage, summary="All users, by e-mail address."
)
def find_users(call: Call, query: PageQuery) -> UserPage:
    """Answer a page of users."""
    return users.list_users(call.units, call.actor, query)


@routes.route("POST", "/admin/users", request=UserCreate, answer=User, status=201, summary="Add a user.")
def create_user(call: Call, body: UserCreate) -> Answer:
    """Answer the new user."""
    return _tagged(users.create_user(call.units, call.actor, body))


@routes.route("GET", "/admin/users/<user_id>", answer=User, tagged=True, summary="One user.")
def read_user(call: Call, user_id: str) -> Answer:
    """Answer the user."""
    return _tagged(users.read_user(call.units, call.actor, user_id))


@routes.route(
    "PATCH",
    "/admin/users/<user_id>",
    request=UserChange,
    answer=User,
    tagged=True,
    precondition="version",
    summary="Change a user's role, or disable or enable the user.",
)
def change_user(call: Call, user_id: str, body: UserChange) -> Answer:
    """Answer the changed user."""
    return _tagged(users.update_user(call.units, call.actor, user_id, body, call.if_match_version()))


@routes.route(
    "GET", "/admin/tokens", query=TokenQuery, answer=TokenPage, summary="All tokens, without secrets."
)
def find_tokens(call: Call, query: TokenQuery) -> TokenPage:
    """Answer a page of tokens."""
    return tokens.list_tokens(call.units, call.actor, query, query.user)


@routes.route(
    "POST",
    "/admin/tokens",
    request=TokenCreate,
    answer=TokenIssued,
    status=201,
    secret_id=("info", "token_id"),
    summary="Issue a token; its secret is answered once.",
)
def issue_token(call: Call, body: TokenCreate) -> TokenIssued:
    """Answer the token with its secret."""
    return tokens.issue_token(call.units, call.actor, body)


@routes.route("DELETE", "/admin/tokens/<token_id>", summary="Revoke a token.")
def revoke_token(call: Call, token_id: str) -> None:
    """Answer nothing."""
    tokens.revoke_token(call.units, call.actor, token_id)


@routes.route("GET", "/admin/policy", answer=PolicyAnswer, tagged=True, summary="What an Org Review needs.")
def read_policy(call: Call) -> Answer:
    """Answer the policy."""
    return _versioned(organization.read_policy(call.units, call.actor))


@routes.route(
    "PATCH",
    "/admin/policy",
    request=Policy,
    answer=PolicyAnswer,
    tagged=True,
    precondition="version",
    summary="Change what an Org Review needs; a field that is left out stays.",
)
def change_policy(call: Call, body: Policy) -> Answer:
    """Answer the changed policy."""
    return _versioned(organization.change_policy(call.units, call.actor, body, call.if_match_version()))


@routes.route(
    "GET",
    "/admin/audit",
    query=PageQuery,
    answer=AuditPage,
    summary="Administrative and publishing actions, newest first.",
)
def find_audit(call: Call, query: PageQuery) -> AuditPage:
    """Answer a page of audit events."""
    return organization.list_audit(call.units, call.actor, query)


def _tagged(user: User) -> Answer:
    return Answer(user, version=user.version)


def _versioned(policy: PolicyAnswer) -> Answer:
    return Answer(policy, version=policy.version)

"""``interleaf-server token``: API tokens."""

from __future__ import annotations

from typing import Annotated

import typer

from org_server.cli.common import Data, DatabaseUrl, Json, build, opened, print_json, print_table, when
from org_server.services.pages import PageQuery
from org_server.services.tokens import find_token, issue, page_of_tokens, revoke
from shared_schema import limits
from shared_schema.org_contract import TokenCreate, TokenInfo

app = typer.Typer(help="Issue, list and revoke API tokens.", no_args_is_help=True)


@app.command("issue")
def issue_one(
    user: Annotated[str, typer.Option(metavar="EMAIL", help="Whom it acts as; a user id is fine too.")],
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every write.")] = False,
    project: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this Project; may be repeated.")
    ] = None,
    expires_days: Annotated[
        int | None, typer.Option("--expires-days", metavar="N", min=1, max=3650, help="Ends after N days.")
    ] = None,
    label: Annotated[str, typer.Option(metavar="TEXT", help="What it is for.")] = "",
    data: Data = None,
    url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Issue a token and print it, for the only time. It alone goes to stdout."""
    request = build(
        TokenCreate,
        {
            "user": user,
            "read_only": read_only,
            "project_ids": project or None,
            "expires_in_days": expires_days,
            "label": label,
        },
    )
    with opened(data, url) as units, units.write() as uow:
        issued = issue(uow, request, None)
    if as_json:
        print_json({"token": issued.token, "token_id": issued.info.token_id})
        return
    until = f" until {when(issued.info.expires_at)} UTC" if issued.info.expires_at is not None else ""
    typer.echo(f"A token for {issued.info.email}{until} ({issued.info.token_id}); not shown again:", err=True)
    typer.echo(issued.token)


@app.command("list")
def list_all(
    user: Annotated[str | None, typer.Option(metavar="EMAIL", help="Only this user's.")] = None,
    data: Data = None,
    url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List tokens, without their secrets."""
    found: list[TokenInfo] = []
    with opened(data, url) as units, units.read() as uow:
        now = uow.now
        cursor: str | None = None
        while True:
            page = page_of_tokens(uow, PageQuery(limit=limits.PAGE_MAX, cursor=cursor), user)
            found += page.tokens
            if (cursor := page.next_cursor) is None:
                break
    if as_json:
        print_json({"tokens": [token.model_dump(mode="json") for token in found]})
        return
    print_table(
        ("TOKEN", "USER", "STATE", "REACH", "LAST USED", "EXPIRES", "LABEL"),
        (
            (
                token.token_id,
                token.email,
                _state(token, now),
                _reach(token),
                when(token.last_used_at),
                when(token.expires_at),
                token.label,
            )
            for token in found
        ),
        "There are no tokens.",
    )


@app.command("revoke")
def revoke_one(
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="The token's id (tok_…), not its secret.")],
    data: Data = None,
    url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """End a token at once."""
    with opened(data, url) as units, units.write() as uow:
        token, user = find_token(uow, token_id)
        revoke(uow, token, None)
        email = user.email
    if as_json:
        print_json({"token_id": token_id, "revoked": True})
        return
    typer.echo(f"Revoked {token_id} of {email}.")


def _state(token: TokenInfo, now: int) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= now else "active"


def _reach(token: TokenInfo) -> str:
    reach = "all" if token.project_ids is None else f"{len(token.project_ids)} Projects"
    return f"{reach}, read only" if token.read_only else reach

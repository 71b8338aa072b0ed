"""``interleaf-server user``: the Organization's users. The operator of the machine may do it all."""

from __future__ import annotations

from typing import Annotated

import typer

from org_server.cli.common import Data, DatabaseUrl, Json, build, opened, print_json, print_table, when
from org_server.services.pages import PageQuery
from org_server.services.users import add_user, change_user, find_user, page_of_users, view
from shared_schema import limits
from shared_schema.org_contract import Role, User, UserChange, UserCreate

app = typer.Typer(help="Add users, and change what they may do.", no_args_is_help=True)

Who = Annotated[str, typer.Argument(metavar="USER", help="An e-mail address or a user id.")]


@app.command()
def add(
    email: Annotated[str, typer.Option(metavar="EMAIL", help="The address that the user is known by.")],
    role: Annotated[Role, typer.Option(help="The role in the Organization.")] = Role.MEMBER,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The name that others see.")] = None,
    data: Data = None,
    url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Add a user. A token lets the user sign in: interleaf-server token issue."""
    request = build(UserCreate, {"email": email, "name": name, "role": role})
    with opened(data, url) as units, units.write() as uow:
        user = view(add_user(uow, request, None))
    if as_json:
        print_json(user.model_dump(mode="json"))
        return
    typer.echo(f"Added {user.email} as {user.role} ({user.user_id}).")
    typer.echo(f"Issue a token:  interleaf-server token issue --user {user.email}")


@app.command("list")
def list_all(data: Data = None, url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List all users."""
    found: list[User] = []
    with opened(data, url) as units, units.read() as uow:
        cursor: str | None = None
        while True:
            page = page_of_users(uow, PageQuery(limit=limits.PAGE_MAX, cursor=cursor))
            found += page.users
            if (cursor := page.next_cursor) is None:
                break
    if as_json:
        print_json({"users": [user.model_dump(mode="json") for user in found]})
        return
    print_table(
        ("EMAIL", "NAME", "ROLE", "STATE", "SINCE", "ID"),
        (
            (
                user.email,
                user.name,
                user.role.value,
                "disabled" if user.disabled else "active",
                when(user.created_at),
                user.user_id,
            )
            for user in found
        ),
        "There are no users.",
    )


@app.command()
def role(
    user: Who,
    new_role: Annotated[Role, typer.Argument(metavar="ROLE", help="owner, admin or member.")],
    data: Data = None,
    url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Give a user another role in the Organization."""
    _change(user, UserChange(role=new_role), data, url, as_json)


@app.command()
def disable(user: Who, data: Data = None, url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Shut a user out: no token of theirs works any more."""
    _change(user, UserChange(disabled=True), data, url, as_json)


@app.command()
def enable(user: Who, data: Data = None, url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Let a disabled user in again."""
    _change(user, UserChange(disabled=False), data, url, as_json)


def _change(user: str, change: UserChange, data: Data, url: DatabaseUrl, as_json: bool) -> None:
    with opened(data, url) as units, units.write() as uow:
        row = find_user(uow, user)
        change_user(uow, row, change, None)
        changed = view(row)
    if as_json:
        print_json(changed.model_dump(mode="json"))
        return
    state = ", disabled" if changed.disabled else ""
    typer.echo(f"{changed.email} is {changed.role}{state}.")

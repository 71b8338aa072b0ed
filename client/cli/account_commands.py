"""``interleaf login`` and ``interleaf logout``."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated

import typer

from client.cli.local import ask
from client.cli.options import Json
from client.cli.output import count, say, show
from client.cli.taught import verb
from shared_schema.daemon_contract import Account, Count, Empty, LoginCall
from shared_schema.errors import ErrorCode, InterleafError

app = typer.Typer()

Server = Annotated[str, typer.Option("--server", metavar="URL", help="Address of the Organization server.")]
FromStdin = Annotated[bool, typer.Option("--token-stdin", help="Read the token from standard input.")]


@verb(
    app,
    "login",
    "interleaf login --server https://memory.example.com --token-stdin < token.txt",
    "pass show interleaf | interleaf login --server URL --token-stdin",
    more="An administrator issues tokens with: interleaf-server token issue",
)
def login(server: Server, token_stdin: FromStdin = False, as_json: Json = False) -> None:
    """Sign in with a token. It is kept in the system's keyring, or in a file of yours alone.

    A token never stands in the arguments, where other users could read it. Without --token-stdin
    it is asked for.
    """
    token = _read_token(token_stdin)
    account = ask("login", LoginCall(server_url=server, token=token), Account)

    def human() -> None:
        me = account.me
        say(f"Signed in to {me.org_name} at {account.server_url} as {me.email} ({me.org_role.value}).")
        if me.read_only:
            say("The token may only read: nothing that is stored here can be sent.")
        if me.projects:
            say(f"Projects: {', '.join(project.name for project in me.projects)}")
            say("Connect a directory with: interleaf project bind PROJECT")
        else:
            say("No Project yet. Create one with: interleaf project create NAME")

    show(account, as_json, human)


def _read_token(from_stdin: bool) -> str:
    if from_stdin:
        token = sys.stdin.read().strip()
    elif sys.stdin.isatty():
        token = getpass.getpass("Token: ").strip()
    else:
        raise typer.BadParameter("standard input is no terminal: add --token-stdin")
    if not token:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS, "The token is empty. Pass it on standard input, with --token-stdin."
        )
    return token


@verb(app, "logout", "interleaf logout")
def logout(as_json: Json = False) -> None:
    """Forget the token on this machine. Drafts and published memory stay; nothing is sent any more."""
    answer = ask("logout", Empty(), Count)
    waiting = (
        f" {count(answer.count, 'operation')} will be sent after the next sign-in." if answer.count else ""
    )
    show(answer, as_json, lambda: say(f"Signed out.{waiting}"))

"""The Organization server, as the account of this machine sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from client.cli.local import ask, binding
from shared_schema import org_contract as api
from shared_schema.daemon_contract import Account, Empty
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import is_id

if TYPE_CHECKING:
    from client.sync.org_client import OrgClient


@contextmanager
def server() -> Iterator[OrgClient]:
    """Connect with the stored token; raises ``signed_out`` without one."""
    from client.config import Settings
    from client.credentials import open_credentials
    from client.sync.org_client import OrgClient

    account = ask("account", Empty(), Account)
    settings = Settings()
    credentials = open_credentials(
        settings.places.home, own_home=settings.home is not None or settings.credentials == "file"
    )
    token = credentials.get(account.server_url)
    if token is None:
        raise InterleafError(ErrorCode.SIGNED_OUT, "There is no token for the server on this machine.")
    org = OrgClient(account.server_url, token)
    try:
        yield org
    finally:
        org.close()


def find_project(org: OrgClient, project: str | None) -> api.Project:
    """Return the Project with this id or unique name; None means that of this directory."""
    if project is None:
        return org.project(binding().project_id)
    if is_id(project, "prj"):
        return org.project(project)
    named = list(org.projects(name=project))
    if not named:
        raise InterleafError(
            ErrorCode.NOT_FOUND,
            f"You have no Project named {project}.",
            details={"project": project, "next": "List those that you may see with: interleaf project list"},
        )
    if len(named) > 1:
        ids = [item.project_id for item in named]
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"Several Projects have the name {project}; give one of the ids {', '.join(ids)}.",
            details={"fields": [{"field": "project", "problem": "is not unique"}]},
        )
    return named[0]

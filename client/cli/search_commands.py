"""``interleaf search``: the index that `activate` looks into."""

from __future__ import annotations

from client.cli.daemon_commands import describe_index
from client.cli.local import ask, chosen
from client.cli.options import InProject, Json
from client.cli.output import facts, say, show
from client.cli.taught import noun, verb
from shared_schema.daemon_contract import IndexStatus, ProjectCall

app = noun("interleaf search status", "interleaf search rebuild --project Rocket")


@verb(app, "status", "interleaf search status")
def status(project: InProject = None, as_json: Json = False) -> None:
    """Show how the search index of a Project stands."""
    found = ask("search_index_status", ProjectCall(project=chosen(project)), IndexStatus)
    show(found, as_json, lambda: _print(found))


@verb(app, "rebuild", "interleaf search rebuild")
def rebuild(project: InProject = None, as_json: Json = False) -> None:
    """Build the search index anew.

    It happens in the background; the present one answers meanwhile.
    """
    found = ask("rebuild_search_index", ProjectCall(project=chosen(project)), IndexStatus)

    def human() -> None:
        say("The index is being built anew. Follow it with: interleaf search status")

    show(found, as_json, human)


def _print(found: IndexStatus) -> None:
    facts(
        [
            ("Index", describe_index(found)),
            ("Revision", found.index_revision),
            ("Reranker", found.reranker),
        ]
    )

"""``interleaf version``."""

from __future__ import annotations

import typer

from client.cli.options import Json
from client.cli.output import say, show
from client.cli.taught import verb
from shared_schema.daemon_contract import runtime_marker

app = typer.Typer()


@verb(app, "version", "interleaf version --json")
def version(as_json: Json = False) -> None:
    """Print the version and the build.

    Daemon and integrations must be of the same build.
    """
    marker = runtime_marker()
    answer = {"version": marker.release, "build": marker.fingerprint, "protocol": marker.protocol}
    show(answer, as_json, lambda: say(f"interleaf {marker.release} (build {marker.fingerprint})"))

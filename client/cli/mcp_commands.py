"""``interleaf mcp``: between a coding agent and this machine's memory."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from client.cli.options import Json
from client.cli.output import print_json, say
from client.cli.taught import noun, verb
from shared_schema.directories import canonical_directory

app = noun("interleaf mcp config", "interleaf mcp serve --project-root ~/src/rocket")

Root = Annotated[
    Path | None,
    typer.Option(
        "--project-root",
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="The directory whose Project is served; default: the current one.",
    ),
]


@verb(
    app,
    "serve",
    "interleaf mcp serve",
    "interleaf mcp serve --project-root ~/src/rocket",
    more="Agent hosts start this; see: interleaf mcp config",
)
def serve(
    project_root: Root = None,
    toolset: Annotated[Literal["memory"], typer.Option("--toolset", help="Which tools to offer.")] = "memory",
) -> None:
    """Serve the memory tool to an agent host.

    The one tool, `memory`, on standard input and output, until the input ends.
    """
    from client.mcp_proxy.server import serve as serve_proxy

    del toolset  # there is one
    serve_proxy(project_root)


@verb(
    app,
    "config",
    "interleaf mcp config > .mcp.json",
    "interleaf mcp config --project-root ~/src/rocket",
)
def config(project_root: Root = None, as_json: Json = False) -> None:
    """Print the configuration for an agent host.

    The `mcpServers` JSON, with absolute paths: hosts do not use your shell's search path.
    """
    directory = canonical_directory(project_root or Path.cwd()).path
    command, *arguments = _command()
    entry = {"command": command, "args": [*arguments, "mcp", "serve", "--project-root", directory]}
    answer = {"mcpServers": {"interleaf": entry}}
    if as_json:
        print_json(answer)
        return
    # The JSON alone goes to stdout, so that it can be written into a file.
    sys.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")
    if sys.stderr.isatty():
        say("Put this into the agent host's MCP configuration, then restart the host.", stderr=True)
        say(
            f"The directory needs a Project: interleaf project bind PROJECT --directory {directory}",
            stderr=True,
        )


def _command() -> list[str]:
    """Return how this installation is started, as absolute paths: hosts have a search path of their own."""
    name = "interleaf.exe" if sys.platform == "win32" else "interleaf"
    beside = Path(sys.executable).with_name(name)
    if beside.is_file():
        return [str(beside)]
    return [sys.executable, "-P", "-m", "client.cli"]

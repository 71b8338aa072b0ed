"""Options that many commands share, so that they are called and explained the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

InProject = Annotated[
    str | None,
    typer.Option("--project", metavar="PROJECT", help="Project id or name; default: that of this directory."),
]

ProjectArgument = Annotated[str, typer.Argument(metavar="PROJECT", help="Project id or unique name.")]

Directory = Annotated[
    Path,
    typer.Option(
        "--directory", metavar="DIR", help="Which directory; default: this one.", show_default=False
    ),
]

ReviewArgument = Annotated[str, typer.Argument(metavar="REVIEW", help="Review id, as `review list` shows.")]

DraftArgument = Annotated[
    str, typer.Argument(metavar="DRAFT", help="Draft id; or a resource id or path with a Draft on it.")
]

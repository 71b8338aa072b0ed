"""Writes the pages of ``docs/`` that are taken from the code: ``make docs``.

``tests/test_docs.py`` fails while a page differs from what this would write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import typer.main
from pydantic_settings import BaseSettings

from client.cli.app import build_app
from client.config import Settings as ClientSettings
from org_server.cli.main import app as server_app
from org_server.config import Settings as ServerSettings
from org_server.http.openapi import document
from org_server.wiring import ROUTES
from shared_schema.errors import ERRORS, Kind
from shared_schema.org_contract import API_PREFIX
from shared_schema.release import RELEASE
from shared_schema.tool_contract import answer_schemas, input_schema, output_schema

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = ROOT / "docs"


def errors_page() -> str:
    """List every error code by kind."""
    lines = [
        "# Errors",
        "",
        "Every door (the tool, the command lines, the HTTP API, the daemon's socket) answers a failure",
        'with the same body: `{"code", "message", "details"}`. A code is never renamed. Only',
        "`not_ready` and `unavailable` may be retried unchanged.",
        "",
    ]
    for kind in Kind:
        lines += [f"## {kind.value}", "", "| Code | HTTP | What to do |", "|---|---|---|"]
        lines += [f"| `{c.value}` | {s.status} | {s.remedy} |" for c, s in ERRORS.items() if s.kind is kind]
        lines.append("")
    return "\n".join(lines)


def commands_page() -> str:
    """Describe every command of both programs."""
    lines = [
        "# Commands",
        "",
        "With `--json` a command prints one object on stdout and nothing else. Exit status: 0 done,",
        '1 an error (`{"error": {…}}` with `--json`), 2 a wrong call, 130 interrupted.',
        "",
    ]
    for name, app in (("interleaf", build_app(complete=True)), ("interleaf-server", server_app)):
        lines += [f"# `{name}`", ""]
        for path, command in _commands(typer.main.get_command(app), name):
            lines += _command_section(path, command)
    return "\n".join(lines)


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Walk a command tree; typer brings a click of its own, so the types are not click's."""
    if hasattr(command, "list_commands"):
        context = command.context_class(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from _commands(found, f"{path} {name}")
    else:
        yield path, command


def _command_section(path: str, command: Any) -> list[str]:
    arguments, options = [], []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            shown = str(parameter.metavar or parameter.name).upper()
            arguments.append(shown)
            help_text = getattr(parameter, "help", None)
            if help_text:
                options.append(f"| `{shown}` | {_cell(help_text)} |")
        elif not parameter.hidden and parameter.name != "help":
            names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
            options.append(f"| {names} | {_cell(parameter.help or '')} |")
    lines = [f"## `{path}`", "", "```", " ".join([path, *arguments]), "```", ""]
    lines += [(command.help or "").replace("\b\n", "").strip(), ""]
    if options:
        lines += ["| Option | |", "|---|---|", *options, ""]
    return lines


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def http_page() -> str:
    """List every route of the HTTP API."""
    lines = [
        "# HTTP API",
        "",
        f"Below `{API_PREFIX}`, JSON in and out, `Authorization: Bearer TOKEN`. Request and answer models",
        "are in `shared_schema/org_contract/`; the running server gives them as OpenAPI 3.1 at",
        f"`{API_PREFIX}/openapi.json`. Without a prefix: `GET /health`, `GET /ready`, `GET /metrics`.",
        "",
        "| Method | Path | Purpose | Request | Answer |",
        "|---|---|---|---|---|",
    ]
    for route in sorted((r for t in ROUTES for r in t.routes), key=lambda r: (r.path, r.method)):
        request = f"`{route.request.__name__}`" if route.request else ""
        answer = f"`{route.answer.__name__}`" if route.answer else ""
        path = route.path.replace("<", "{").replace(">", "}")
        lines.append(f"| {route.method} | `{path}` | {_cell(route.summary)} | {request} | {answer} |")
    return "\n".join([*lines, ""])


def tool_page() -> str:
    """Show the schemas of the memory tool."""
    lines = [
        "# The memory tool",
        "",
        "What `tools/list` advertises is kept small; the full schemas of the answers stand here.",
        "",
    ]
    schemas: list[tuple[str, dict[str, Any]]] = [
        ("Arguments", input_schema()),
        ("Advertised answer", output_schema()),
        *((f"Answer of {name}", schema) for name, schema in answer_schemas().items()),
    ]
    for title, schema in schemas:
        lines += [f"## {title}", "", "```json", json.dumps(schema, indent=1, ensure_ascii=False), "```", ""]
    return "\n".join(lines)


def settings_page() -> str:
    """List every setting of both sides."""
    lines = ["# Settings", "", "Read from the environment; the command line's options come first.", ""]
    pages: list[tuple[str, type[BaseSettings]]] = [
        ("Client", ClientSettings),
        ("Server", ServerSettings),
    ]
    for title, settings in pages:
        prefix = str(settings.model_config.get("env_prefix") or "")
        documented = _attribute_docs(settings)
        lines += [f"## {title}", "", "| Variable | Default | Meaning |", "|---|---|---|"]
        for name, field in settings.model_fields.items():
            alias = field.validation_alias
            variable = alias if isinstance(alias, str) else f"{prefix}{name}".upper()
            default = "" if field.is_required() else f"`{field.get_default(call_default_factory=True)}`"
            meaning = _cell(field.description or documented.get(name, ""))
            lines.append(f"| `{variable}` | {default} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def _attribute_docs(settings: type[BaseSettings]) -> dict[str, str]:
    """Return the string below each attribute: where this code base describes fields."""
    import ast
    import inspect
    import textwrap

    body = ast.parse(textwrap.dedent(inspect.getsource(settings))).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - the source of a class is a class
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            found[field.target.id] = str(text.value.value)
    return found


PAGES: Final[dict[str, Callable[[], str]]] = {
    "errors.md": errors_page,
    "cli.md": commands_page,
    "http.md": http_page,
    "tool.md": tool_page,
    "settings.md": settings_page,
}


def main() -> None:
    """Write every generated page."""
    DOCS.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
    openapi = json.dumps(document(ROUTES, RELEASE), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    (DOCS / "openapi.json").write_text(openapi, encoding="utf-8")


if __name__ == "__main__":
    main()

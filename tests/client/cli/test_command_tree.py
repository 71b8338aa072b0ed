"""Every promised command is there and explains itself."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from client.cli.app import PARTS, build_app, execute
from shared_schema.release import RELEASE

COMMANDS = """
daemon run; daemon start; daemon stop; daemon restart; daemon status
login; logout; sync; version
project create; project list; project show; project bind; project unbind; project bindings; project current
members add; members list; members role; members remove
models prepare; models status; search status; search rebuild
memory list; memory show; memory import; memory export; memory history; memory blame
selection list; selection add; selection remove
draft list; draft show; draft create; draft edit; draft submit; draft discard
outbox list; outbox retry
review list; review show; review diff; review approve; review reject; review merge; review withdraw
review comment; review resolve; review contribute
mcp serve; mcp config
guidelines set-up; guidelines use; guidelines path
runs list; runs show; runs pin; runs unpin
explain
eval run; eval report; eval export
eval case create; eval case list; eval case show; eval case judge; eval case freeze; eval case delete
"""
PROMISED = [line.strip() for line in COMMANDS.replace("\n", ";").split(";") if line.strip()]
WITHOUT_JSON = {"daemon run", "mcp serve"}


def tree() -> Iterator[tuple[str, Any]]:
    def walk(group: Any, path: str) -> Iterator[tuple[str, Any]]:
        for name, command in getattr(group, "commands", {}).items():
            whole = f"{path} {name}".strip()
            if getattr(command, "commands", None):
                yield from walk(command, whole)
            else:
                yield whole, command

    return walk(typer.main.get_command(build_app(complete=True)), "")


TREE = dict(tree())


@pytest.mark.requirement("cli.commands")
def test_the_commands_are_the_promised_ones() -> None:
    assert sorted(TREE) == sorted(PROMISED)


@pytest.mark.requirement("cli.help")
@pytest.mark.parametrize("command", PROMISED)
def test_help_fits_80_columns_and_shows_an_example_of_the_command(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([*command.split(), "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    examples = out.partition("Example")[2].splitlines()[1:]
    assert any(f"interleaf {command}" in line for line in examples)
    # Lines to be copied are never wrapped; everything else is.
    assert [line for line in out.partition("Example")[0].splitlines() if len(line) > 80] == []
    assert ("--json" in out) == (command not in WITHOUT_JSON)


@pytest.mark.requirement("cli.help")
def test_every_option_and_argument_is_explained() -> None:
    silent = [
        (name, parameter.name)
        for name, command in TREE.items()
        for parameter in command.params
        if not parameter.help
    ]
    assert silent == []


@pytest.mark.requirement("cli.help")
def test_lists_of_commands_cut_no_sentence() -> None:
    cut = [name for name, command in TREE.items() if command.get_short_help_str(66).endswith("...")]
    assert cut == []


@pytest.mark.requirement("cli.help")
@pytest.mark.parametrize("command", PROMISED)
def test_examples_are_commands_that_parse(command: str) -> None:
    shown = [line.strip() for line in TREE[command].epilog.splitlines() if line.startswith("  ")]
    for line in shown:
        # What runs is the last of a pipe that is ours; its redirections are the shell's.
        ours = [part.strip() for part in line.split("|") if part.strip().startswith("interleaf ")]
        words = shlex.split(re.split("[<>]", ours[-1])[0])[1:]
        group: Any = typer.main.get_command(build_app(complete=True))
        while words and getattr(group, "commands", None):
            group = group.commands[words.pop(0)]
        if "--project-root" not in words:  # The directory has to exist.
            group.make_context("example", words)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.module)
def test_a_command_is_found_in_the_tree_that_only_loads_its_module(part: Any) -> None:
    for name in part.names:
        whole = typer.main.get_command(build_app(complete=True))
        alone = typer.main.get_command(build_app(name))
        assert sorted(getattr(alone, "commands")[name].__dict__.get("commands", {})) == sorted(  # noqa: B009 - typer's groups declare no such attribute
            getattr(whole, "commands")[name].__dict__.get("commands", {})  # noqa: B009 - as above
        )


@pytest.mark.requirement("cli.version")
def test_the_version_is_printed_by_command_and_by_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["--version"]) == 0
    assert capsys.readouterr().out == f"interleaf {RELEASE}\n"
    assert execute(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == RELEASE


@pytest.mark.requirement("cli.light")
@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], ["pydantic", "httpx", "rich", "flask"]),
        (["draft", "--help"], ["httpx", "rich", "flask", "sqlalchemy", "client.mcp_proxy"]),
        (["review", "--help"], ["httpx", "rich", "flask", "keyring", "client.sync.org_client"]),
    ],
)
def test_help_imports_nothing_that_it_does_not_need(arguments: list[str], absent: list[str]) -> None:
    script = (
        "import sys, json\nfrom client.cli.main import run\n"
        f"run({arguments!r})\nprint(json.dumps([m for m in {absent!r} if m in sys.modules]))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert json.loads(out.splitlines()[-1]) == []


@pytest.mark.requirement("cli.light")
def test_mcp_serve_starts_without_the_command_line_framework() -> None:
    script = (
        "import sys, atexit\nimport client.mcp_proxy.server as server\n"
        "server.main = lambda arguments: print(arguments, 'typer' in sys.modules)\n"
        "from client.cli.main import run\n"
        "sys.modules['client.cli.app'] = None\n"
        "try:\n    run(['mcp', 'serve', '--project-root', 'x'])\nexcept ImportError:\n    pass\n"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out == "['--project-root', 'x'] False\n"

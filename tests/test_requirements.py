"""The manifest and the tests agree, in both directions."""

import ast
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS

ROOT = Path(__file__).resolve().parent.parent


def marked_ids() -> dict[str, list[str]]:
    """Return requirement id → the tests that carry it, read from the sources."""
    found: dict[str, list[str]] = {}
    for file in sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("e2e/**/*.py")]):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "requirement"
            ):
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{file.name}: ids are literals"
                    found.setdefault(str(argument.value), []).append(f"{file.name}:{node.lineno}")
    return found


@pytest.mark.requirement("manifest.two-way")
def test_every_promise_has_a_test() -> None:
    marked = marked_ids()
    promised = {requirement.id for requirement in REQUIREMENTS if not requirement.deferred}
    assert sorted(promised - marked.keys()) == []


@pytest.mark.requirement("manifest.two-way")
def test_every_id_that_a_test_carries_is_promised() -> None:
    promised = {requirement.id for requirement in REQUIREMENTS}
    assert {id_: places for id_, places in marked_ids().items() if id_ not in promised} == {}


def test_ids_are_unique_and_sentences_say_something() -> None:
    ids = [requirement.id for requirement in REQUIREMENTS]
    assert len(ids) == len(set(ids))
    assert all(len(requirement.sentence.split()) > 3 for requirement in REQUIREMENTS)

"""The documentation is what the code says, and names everything that a person can call."""

import json
import re
from pathlib import Path

import pytest

from org_server.http.openapi import document
from org_server.wiring import ROUTES
from shared_schema.release import RELEASE
from tools.generate_docs import DOCS, PAGES

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.requirement("docs.generated")
@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), "run: make docs"


@pytest.mark.requirement("docs.openapi")
def test_the_kept_openapi_document_is_the_servers() -> None:
    kept = json.loads((DOCS / "openapi.json").read_text(encoding="utf-8"))
    assert kept == json.loads(json.dumps(document(ROUTES, RELEASE))), (
        "run: make docs, and add a changelog line"
    )


@pytest.mark.requirement("docs.links")
def test_every_relative_link_of_the_documentation_leads_somewhere() -> None:
    broken = [
        f"{page.name}: {target}"
        for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


@pytest.mark.requirement("docs.files")
def test_every_file_that_the_readme_names_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:client|org_server|shared_schema|tests|docs)/[\w/.-]*)`", text))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.requirement("docs.commands")
def test_every_command_that_the_readme_shows_exists() -> None:
    known = set(
        re.findall(r"## `((?:interleaf|interleaf-server) [\w -]+)`", (DOCS / "cli.md").read_text("utf-8"))
    )
    shown = re.findall(
        r"^(interleaf(?:-server)?) +([a-z]+)(?: +([a-z-]+))?", (ROOT / "README.md").read_text("utf-8"), re.M
    )
    assert shown
    unknown = [
        " ".join(words)
        for words in shown
        if not {f"{words[0]} {words[1]}", f"{words[0]} {words[1]} {words[2]}".strip()} & known
    ]
    assert unknown == []

"""Diffs as reviewers read them."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_schema.memory import ABSENT, ResourceState
from shared_schema.rules.diffs import unified_diff

LINES = [f"line {number}\n" for number in range(1, 31)]


def doc(text: str, path: str = "a.md") -> ResourceState:
    return ResourceState(exists=True, path=path, body=text)


def test_a_change_is_shown_with_three_lines_around_it() -> None:
    changed = [*LINES]
    changed[9] = "LINE 10\n"
    assert unified_diff(doc("".join(LINES)), doc("".join(changed))) == (
        "--- a.md\n+++ a.md\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n+LINE 10\n"
        " line 11\n line 12\n line 13\n"
    )


def test_a_created_and_a_deleted_document_stand_against_nothing() -> None:
    assert unified_diff(ABSENT, doc("x\n")) == "--- /dev/null\n+++ a.md\n@@ -0,0 +1,1 @@\n+x\n"
    assert unified_diff(doc("x\n"), ABSENT) == "--- a.md\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n"


def test_a_rename_alone_shows_both_paths() -> None:
    assert unified_diff(doc("x\n"), doc("x\n", "b.md")) == "--- a.md\n+++ b.md\n"
    assert unified_diff(doc("x\n"), doc("x\n")) == ""


def test_a_missing_last_line_ending_is_said() -> None:
    assert unified_diff(doc("x"), doc("x\n")).endswith("-x\n\\ No newline at end of file\n+x\n")


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the patch program as an oracle")
@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 29), st.sampled_from(["drop", "change", "insert"])), max_size=6))
def test_patch_rebuilds_the_new_text_from_the_diff(edits: list[tuple[int, str]]) -> None:
    new = [*LINES]
    for number, kind in edits:
        at = number % max(1, len(new))
        if kind == "drop" and new:
            del new[at]
        elif kind == "change" and new:
            new[at] = f"changed {number}\n"
        else:
            new.insert(at, f"inserted {number}\n")
    diff = unified_diff(doc("".join(LINES)), doc("".join(new)))
    assert _patched("".join(LINES), diff) == "".join(new)


def _patched(text: str, diff: str) -> str:
    if not diff:
        return text
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "a.md"
        file.write_text(text)
        subprocess.run(["patch", "-s", str(file)], input=diff, text=True, check=True, cwd=directory)
        return file.read_text() if file.exists() else ""

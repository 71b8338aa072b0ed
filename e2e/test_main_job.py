"""From one agent's store to another member's agent reading the merged text."""

import pytest

from e2e.conftest import activated
from e2e.harness import Agent, CommandError, Machine, Team, ToolError, wait_until

STYLE = (
    "# Code review\n\n## Tone\n\nPraise in public.\n\n## Time\n\nA review waits at most one working day.\n"
)


@pytest.mark.models
@pytest.mark.requirement("job.end-to-end", "store.create", "store.adaptation", "review.merge")
def test_a_stored_change_is_reviewed_merged_and_found_on_another_machine(
    acme: Team, olga: Machine, maya: Machine, agent: Agent
) -> None:
    body = olga.document("review.md", STYLE)
    org_draft = olga.command(
        "draft", "create", "--scope", "org", "--path", "guides/code-review.md", "--body-file", body
    )
    acme.publish(olga, org_draft["draft_id"])
    olga.sync()
    reference = agent.load("guides/code-review.md")[0]
    assert (reference["scope"], reference["content"]) == ("org", STYLE)

    created = agent.store(
        "create", path="release/RELEASE.md", body="# Release\n\nRun verification before publishing.\n"
    )
    assert created["queued"] is True
    assert created["sync_status"] in ("queued", "syncing", "synced")
    adapted = agent.replace("guides/code-review.md", "one working day", "four hours")
    assert adapted["adapts"] == reference["resource_id"]
    assert adapted["resource_id"] != reference["resource_id"]
    with pytest.raises(ToolError) as hidden:
        agent.load(reference["resource_id"])
    assert hidden.value.code == "memory_resource_not_found"
    assert hidden.value.details["adapted_by"] == adapted["resource_id"]

    olga.sync()
    review = olga.command("draft", "submit", created["draft_id"], adapted["draft_id"])["review_id"]
    diff = olga.text("review", "diff", review)
    assert "+Run verification before publishing." in diff
    assert "-A review waits at most one working day." in diff
    merged = olga.command("review", "merge", review)
    assert merged["status"] == "merged"
    assert merged["review_id"] == review
    assert merged["commit_id"]

    maya.sync()
    with maya.agent() as other:
        loaded = other.load("release/RELEASE.md", "guides/code-review.md")
        assert [item["provenance"] for item in loaded] == ["authority", "authority"]
        assert "four hours" in loaded[1]["content"]
        assert loaded[1]["org_source"]["resource_id"] == reference["resource_id"]
        answer = activated(other, "what must be done before publishing a release?", "release/RELEASE.md")
        assert answer["profile"] == "agent_activation.v2"
    assert olga.drafts() == []
    assert {draft["status"] for draft in olga.drafts("--all")} == {"merged"}


@pytest.mark.models
@pytest.mark.requirement("activate.own-draft", "activate.delta")
def test_an_agent_finds_its_own_draft_in_the_next_call_and_never_reads_it_twice(agent: Agent) -> None:
    agent.store("create", path="notes/kumquat.md", body="# Kumquat\n\nThe kumquat cluster lives in Oslo.\n")
    first = activated(agent, "where does the kumquat cluster live?", "notes/kumquat.md")
    second = agent.activate("where does the kumquat cluster live?", str(first["next_state"]))
    again = [fragment for fragment in second["fragments"] if fragment["path"] == "notes/kumquat.md"]
    assert [fragment["action"] for fragment in again] == ["reuse"]
    assert "content" not in again[0]
    agent.replace("notes/kumquat.md", "in Oslo", "in Bergen")
    third = agent.activate("where does the kumquat cluster live?", second["next_state"])
    changed = [fragment for fragment in third["fragments"] if fragment["path"] == "notes/kumquat.md"]
    assert [fragment["action"] for fragment in changed] == ["replace"]
    assert "Bergen" in changed[0]["content"]
    created = next(d for d in [agent.load("notes/kumquat.md")[0]["draft"]])
    agent.store("discard", id=created["draft_id"])
    fourth = agent.activate("where does the kumquat cluster live?", third["next_state"])
    assert changed[0]["unit_key"] in {unit["unit_key"] for unit in fourth["removed"]}


@pytest.mark.models
@pytest.mark.requirement("activate.chinese")
def test_chinese_questions_find_chinese_documents(agent: Agent) -> None:
    agent.store("create", path="中文/发布.md", body="# 发布流程\n\n发布前必须先完成构建、测试和文档验证。\n")
    agent.store("create", path="中文/值班.md", body="# 值班\n\n值班工程师每周一早上九点交接。\n")
    answer = activated(agent, "发布之前要做什么验证？", "中文/发布.md")
    fragments = answer["fragments"]
    assert isinstance(fragments, list)
    assert fragments[0]["path"] == "中文/发布.md"


@pytest.mark.requirement("sync.outage")
def test_a_store_during_an_outage_is_durable_waits_and_arrives(acme: Team, maya: Machine) -> None:
    acme.server.stop()
    with maya.agent() as agent:
        stored = agent.store("create", path="notes/outage.md", body="# Outage\n\nWritten meanwhile.\n")

        def status() -> object:
            return next(d["sync_status"] for d in maya.drafts() if d["id"] == stored["draft_id"])

        wait_until(lambda: status() == "retrying", "the operation to be retrying")
        assert agent.load("notes/outage.md")[0]["provenance"] == "draft"
    acme.server.start()
    assert maya.sync()["pending"] == 0
    assert status() == "synced"


@pytest.mark.requirement("review.permissions")
def test_a_member_may_submit_but_not_merge(acme: Team, maya: Machine) -> None:
    with maya.agent() as agent:
        stored = agent.store("create", path="notes/member.md", body="# Member\n\nMine.\n")
    maya.sync()
    review = maya.command("draft", "submit", stored["draft_id"])["review_id"]
    with pytest.raises(CommandError) as refused:
        maya.command("review", "merge", review)
    assert refused.value.error["code"] == "forbidden"
    acme.owner.command("review", "reject", review)
    maya.sync()
    assert {d["status"] for d in maya.drafts() if d["id"] == stored["draft_id"]} == {"open"}


@pytest.mark.requirement("draft.dimensions")
def test_two_members_edits_of_one_document_reconcile_or_show_a_conflict(
    acme: Team, olga: Machine, maya: Machine
) -> None:
    text = "".join(f"line {number}\n\n" for number in range(12))
    with olga.agent() as one, maya.agent() as two:
        made = one.store("create", path="notes/shared.md", body=text)
        acme.publish(olga, made["draft_id"])
        olga.sync()
        maya.sync()
        first = one.replace("notes/shared.md", "line 2\n", "line two\n")
        clean = two.replace("notes/shared.md", "line 9\n", "line nine\n")
        maya.sync()
        acme.publish(olga, first["draft_id"])
        maya.sync()
        rebased = next(d for d in maya.drafts() if d["id"] == clean["draft_id"])
        assert (rebased["status"], rebased["freshness"]) == ("open", "current")
        merged = two.load("notes/shared.md")[0]["content"]
        assert "line two\n" in merged
        assert "line nine\n" in merged

        olga.sync()
        second = one.replace("notes/shared.md", "line 9\n", "line NINE\n")
        acme.publish(olga, second["draft_id"])
        maya.sync()
        conflicting = next(d for d in maya.drafts() if d["id"] == clean["draft_id"])
        assert (conflicting["freshness"], conflicting["reconciliation"]) == ("behind", "conflicts")
        assert "line nine\n" in two.load("notes/shared.md")[0]["content"]
        with pytest.raises(CommandError) as stopped:
            maya.command("draft", "submit", clean["draft_id"])
        assert stopped.value.error["code"] == "reconciliation_required"
        resolved = merged.replace("line nine", "line nine, agreed")
        maya.command("draft", "edit", "notes/shared.md", "--body-file", maya.document("r.md", resolved))
        acme.publish(maya, clean["draft_id"])
    olga.sync()
    with olga.agent() as one:
        assert one.load("notes/shared.md")[0]["content"] == resolved

"""The memory tool through the real proxy and daemon: its shape, its examples, its refusals."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.harness import Agent, Machine, Team, ToolError
from tests.text_fixtures import CRLF

EXAMPLES = json.loads((Path(__file__).parent / "contract_examples.json").read_text(encoding="utf-8"))


@pytest.fixture(params=["auto", "legacy"])
def any_agent(request: pytest.FixtureRequest, olga: Machine) -> Iterator[Agent]:
    """An agent of each protocol generation: the newest revision, and the initialize handshake."""
    with olga.agent(request.param) as connected:
        yield connected


def refused(agent: Agent, operation: str, arguments: dict[str, Any]) -> ToolError:
    with pytest.raises(ToolError) as error:
        agent.call(operation, arguments)
    return error.value


@pytest.mark.requirement("tool.one", "tool.size")
def test_exactly_one_tool_is_listed_in_few_bytes(any_agent: Agent) -> None:
    tools = any_agent.tools()
    assert [tool.name for tool in tools] == ["memory"]
    listed = json.dumps([tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools])
    assert len(listed.encode()) < 4096
    for schema in (tools[0].input_schema, tools[0].output_schema):
        assert schema["type"] == "object"
        assert not any(word in json.dumps(schema) for word in ("$ref", "oneOf", "anyOf", "allOf"))


@pytest.mark.requirement("tool.guidance")
def test_instructions_fit_and_name_the_guide_and_no_other_tool(any_agent: Agent) -> None:
    instructions = any_agent.client.instructions or ""
    assert 0 < len(instructions) <= 3000
    assert "CLUMSIES.md" in instructions


@pytest.mark.requirement("tool.examples")
def test_the_contracts_examples_work_as_written(any_agent: Agent) -> None:
    created = any_agent.call("store", EXAMPLES["create"]["op"]["store"])
    try:
        assert {"local_operation_id", "draft_id", "queued", "sync_status"} <= created.keys()
        loaded = any_agent.load(EXAMPLES["create"]["op"]["store"]["create"]["path"])[0]
        assert loaded["content"] == EXAMPLES["create"]["op"]["store"]["create"]["body"]
        assert loaded["kind"] == "memory"
        assert loaded["title"] == "Release"
        known = any_agent.load(loaded["resource_id"], known={loaded["resource_id"]: loaded["content_hash"]})[
            0
        ]
        assert known["changed"] is False
        assert "content" not in known
        update = EXAMPLES["update"]["op"]["store"]["update"]
        changed = any_agent.store(
            "update", **update | {"id": loaded["resource_id"], "expected_hash": loaded["content_hash"]}
        )
        assert changed["draft_id"] == created["draft_id"]
        assert any_agent.load(loaded["resource_id"])[0]["content_hash"] == changed["content_hash"]
    finally:
        discarded = any_agent.store("discard", id=created["draft_id"])
        assert discarded["draft_id"] == created["draft_id"]


WRONG_ARGUMENTS: list[tuple[str, Any, str]] = [
    ("no op", {}, "op"),
    ("op null", {"op": None}, "op"),
    ("op a string", {"op": '{"load": {"ids": ["a"]}}'}, "op"),
    ("two operations", {"op": {"activate": {"query": "a"}, "load": {"ids": ["a"]}}}, "op"),
    ("no operation", {"op": {}}, "op"),
    ("unknown operation", {"op": {"retrieve": {"query": "a"}}}, "op.retrieve"),
    ("unknown field beside op", {"op": {"load": {"ids": ["a"]}}, "project_id": "prj_1"}, "project_id"),
    ("unknown field inside", {"op": {"activate": {"query": "a", "limit": 3}}}, "op.activate.limit"),
    ("wrong case", {"op": {"load": {"ids": ["a"], "knownhashes": {}}}}, "op.load.knownhashes"),
    ("snake case", {"op": {"load": {"ids": ["a"], "known_hashes": {}}}}, "op.load.known_hashes"),
    ("null optional", {"op": {"activate": {"query": "a", "state": None}}}, "op.activate.state"),
    ("blank query", {"op": {"activate": {"query": " \n"}}}, "op.activate.query"),
    ("query too long", {"op": {"activate": {"query": "x" * 8193}}}, "op.activate.query"),
    ("query a number", {"op": {"activate": {"query": 5}}}, "op.activate.query"),
    ("no ids", {"op": {"load": {"ids": []}}}, "op.load.ids"),
    ("same id twice", {"op": {"load": {"ids": ["a", "a"]}}}, "op.load.ids"),
    ("empty id", {"op": {"load": {"ids": [""]}}}, "op.load.ids.0"),
    ("101 ids", {"op": {"load": {"ids": [str(n) for n in range(101)]}}}, "op.load.ids"),
    ("store empty", {"op": {"store": {}}}, "op.store"),
    ("two in store", {"op": {"store": {"discard": {"id": "a"}, "delete": {"id": "a"}}}}, "op.store"),
    (
        "another resource type",
        {"op": {"store": {"resource": "mpf", "create": {"path": "a", "body": "b"}}}},
        "op.store.resource",
    ),
    (
        "resource inside create",
        {"op": {"store": {"create": {"path": "a", "body": "b", "resource": "memory"}}}},
        "op.store.create.resource",
    ),
    (
        "a full body in update",
        {"op": {"store": {"update": {"id": "mem_1", "expected_hash": "sha256:0", "body": "b"}}}},
        "op.store.update.body",
    ),
    (
        "empty old_text",
        {
            "op": {
                "store": {
                    "update": {
                        "id": "mem_1",
                        "expected_hash": "sha256:0",
                        "replacements": [{"old_text": "", "new_text": "b"}],
                    }
                }
            }
        },
        "op.store.update.replacements.0.old_text",
    ),
    ("blank body", {"op": {"store": {"create": {"path": "a.md", "body": " \n"}}}}, "body"),
    (
        "NUL in the body",
        {"op": {"store": {"create": {"path": "a.md", "body": "a\0b"}}}},
        "op.store.create.body",
    ),
    ("body over 1 MiB", {"op": {"store": {"create": {"path": "a.md", "body": "x" * 1048577}}}}, "body"),
]


@pytest.mark.requirement("error.invalid_arguments")
@pytest.mark.parametrize(
    ("arguments", "field"), [row[1:] for row in WRONG_ARGUMENTS], ids=[r[0] for r in WRONG_ARGUMENTS]
)
def test_wrong_arguments_are_refused_by_name(
    olga: Machine, shared_agent: Agent, arguments: Any, field: str
) -> None:
    result = shared_agent.raw(arguments)
    assert result.is_error
    error = result.structured_content["error"]
    assert error["code"] == "invalid_arguments"
    assert any(item["field"].endswith(field) for item in error["details"]), error["details"]
    assert all(item["problem"] for item in error["details"])


@pytest.fixture(scope="module")
def shared_agent(olga: Machine) -> Iterator[Agent]:
    """One agent for many refusals."""
    with olga.agent() as connected:
        yield connected


@pytest.fixture(scope="module")
def note(shared_agent: Agent) -> dict[str, Any]:
    """One stored note, as loaded."""
    shared_agent.store("create", path="notes/errors.md", body="# Errors\n\naaa\n\nbeta gamma delta\n")
    return shared_agent.load("notes/errors.md")[0]


def update(note: dict[str, Any], *pairs: tuple[str, str], **other: str) -> dict[str, Any]:
    replacements = [{"old_text": old, "new_text": new} for old, new in pairs]
    base = {"id": note["resource_id"], "expected_hash": note["content_hash"], "replacements": replacements}
    return {"update": base | other}


@pytest.mark.requirement("error.text_replacement")
def test_replacements_that_do_not_fit_are_refused_and_change_nothing(
    shared_agent: Agent, note: dict[str, Any]
) -> None:
    missing = refused(shared_agent, "store", update(note, ("beta", "BETA"), ("omega", "x")))
    assert (missing.code, missing.details["index"]) == ("text_replacement_not_found", 1)
    ambiguous = refused(shared_agent, "store", update(note, ("aa", "b")))
    assert (ambiguous.code, ambiguous.details["index"]) == ("text_replacement_ambiguous", 0)
    assert ambiguous.details["lines"] == [3, 3]
    overlap = refused(shared_agent, "store", update(note, ("beta gamma", "x"), ("gamma delta", "y")))
    assert overlap.code == "text_replacement_overlap"
    same = refused(shared_agent, "store", update(note, ("beta", "beta")))
    assert same.code == "text_replacement_no_change"
    assert shared_agent.load("notes/errors.md")[0]["content_hash"] == note["content_hash"]


@pytest.mark.requirement("error.memory_content_changed")
def test_a_stale_hash_is_refused_with_the_current_one(shared_agent: Agent, note: dict[str, Any]) -> None:
    stale = refused(shared_agent, "store", update(note, ("beta", "x"), expected_hash="sha256:" + "0" * 64))
    assert stale.code == "memory_content_changed"
    assert stale.details["current_hash"] == note["content_hash"]


@pytest.mark.requirement("error.line_endings")
def test_a_match_that_only_fails_by_line_endings_says_so(shared_agent: Agent) -> None:
    shared_agent.store("create", path="notes/crlf.md", body=CRLF)
    loaded = shared_agent.load("notes/crlf.md")[0]
    assert loaded["content"] == CRLF
    passage = CRLF.replace("\r\n", "\n")
    error = refused(shared_agent, "store", update(loaded, (passage, "x")))
    assert (error.code, error.details["reason"]) == ("text_replacement_not_found", "line_endings")


@pytest.mark.requirement("error.memory_resource_not_found")
def test_one_missing_target_fails_the_load_with_suggestions(
    shared_agent: Agent, note: dict[str, Any]
) -> None:
    error = refused(shared_agent, "load", {"ids": [note["resource_id"], "notes/erors.md", "mem_none"]})
    assert error.code == "memory_resource_not_found"
    assert error.details["missing"] == ["notes/erors.md", "mem_none"]
    assert "notes/errors.md" in error.details["suggestions"]["notes/erors.md"]


@pytest.mark.requirement("error.paths")
def test_taken_and_impossible_paths_are_refused(shared_agent: Agent, note: dict[str, Any]) -> None:
    for path in ("notes/errors.md", "NOTES/Errors.md", "notes/errors.md/below.md", "notes"):
        assert refused(shared_agent, "store", {"create": {"path": path, "body": "x"}}).code == "path_occupied"
    for path in ("/etc/passwd", "../up.md", "a//b.md", "a\\b.md", "CON.md", "mem_0192", "a/b.", " a.md"):
        assert (
            refused(shared_agent, "store", {"create": {"path": path, "body": "x"}}).code == "invalid_path"
        ), path
    moved = refused(shared_agent, "store", {"rename": {"id": note["resource_id"], "new_path": "../up.md"}})
    assert moved.code == "invalid_path"


@pytest.mark.requirement("error.draft_not_found")
def test_discarding_what_has_no_draft_is_refused(shared_agent: Agent) -> None:
    assert refused(shared_agent, "store", {"discard": {"id": "drf_none"}}).code == "draft_not_found"


@pytest.mark.models
@pytest.mark.requirement("error.invalid_activation_state")
def test_a_state_that_this_daemon_did_not_issue_is_never_an_empty_state(
    shared_agent: Agent, note: dict[str, Any]
) -> None:
    for state in ("x", "optional-opaque-state", "e30.e30.e30", "a" * 5000):
        error = refused(shared_agent, "activate", {"query": "errors", "state": state})
        assert error.code == "invalid_activation_state"


@pytest.mark.requirement("error.org_reference_not_deletable")
def test_an_org_reference_is_not_deleted_by_store(acme: Team, olga: Machine, shared_agent: Agent) -> None:
    body = olga.document("org.md", "# Shared\n\nFor everybody.\n")
    draft = olga.command("draft", "create", "--scope", "org", "--path", "org/shared.md", "--body-file", body)
    acme.publish(olga, draft["draft_id"])
    olga.sync()
    reference = shared_agent.load("org/shared.md")[0]
    error = refused(shared_agent, "store", {"delete": {"id": reference["resource_id"]}})
    assert error.code == "org_reference_not_deletable"


@pytest.mark.requirement("error.project_binding_not_found")
def test_an_unbound_directory_is_told_how_to_bind(olga: Machine, tmp_path: Path) -> None:
    with olga.agent(directory=tmp_path) as lost:
        error = refused(lost, "load", {"ids": ["a.md"]})
    assert error.code == "project_binding_not_found"
    assert "interleaf project bind" in str(error)


@pytest.mark.requirement("error.project_binding_changed")
def test_a_directory_bound_elsewhere_meanwhile_is_refused(olga: Machine, tmp_path: Path) -> None:
    olga.command("project", "create", "Elsewhere")
    olga.command("project", "bind", "Rocket", "--directory", str(tmp_path))
    olga.sync()
    with olga.agent(directory=tmp_path) as moved:
        refused(moved, "load", {"ids": ["none.md"]})
        olga.command("project", "bind", "Elsewhere", "--directory", str(tmp_path))
        assert refused(moved, "load", {"ids": ["none.md"]}).code == "project_binding_changed"
    with olga.agent(directory=tmp_path) as fresh:
        olga.sync()
        assert refused(fresh, "load", {"ids": ["none.md"]}).code == "memory_resource_not_found"
    olga.command("project", "unbind", "--directory", str(tmp_path))


@pytest.mark.requirement("error.project_access_lost")
def test_a_removed_member_loses_the_text_but_not_the_drafts(acme: Team) -> None:
    noor = acme.member("noor")
    with noor.agent() as agent:
        stored = agent.store("create", path="notes/noor.md", body="# Noor\n\nMine.\n")
        noor.sync()
        acme.owner.command("members", "remove", "Rocket", "noor@example.com")
        noor.sync()
        assert refused(agent, "load", {"ids": ["notes/noor.md"]}).code == "project_access_lost"
        assert refused(agent, "activate", {"query": "noor"}).code == "project_access_lost"
        assert stored["draft_id"] in {draft["id"] for draft in noor.drafts()}
        acme.owner.command("members", "add", "Rocket", "noor@example.com")
        noor.sync()
        assert agent.load("notes/noor.md")[0]["content"] == "# Noor\n\nMine.\n"


@pytest.mark.requirement("error.search_model")
def test_without_models_activate_says_so_and_load_and_store_work(acme: Team, tmp_path: Path) -> None:
    token = acme.server.add_user("piet@example.com")
    acme.owner.command("members", "add", "Rocket", "piet@example.com")
    piet = Machine(
        tmp_path / "piet", tmp_path / "empty-models", {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    )
    acme.machines["piet"] = piet
    piet.start(acme.server, token)
    piet.command("project", "bind", "Rocket")
    piet.sync()
    with piet.agent() as agent:
        agent.store("create", path="notes/piet.md", body="# Piet\n")
        assert agent.load("notes/piet.md")[0]["content"] == "# Piet\n"
        error = refused(agent, "activate", {"query": "piet"})
        assert error.code in ("search_model_preparing", "search_model_unavailable")
        if error.code == "search_model_preparing":
            assert {"current_bytes", "total_bytes", "stage"} <= error.details.keys()


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.requirement("error.daemon_unavailable")
def test_a_dead_daemon_is_named_with_its_remedy_and_the_proxy_recovers(acme: Team, tmp_path: Path) -> None:
    token = acme.server.add_user("rosa@example.com")
    acme.owner.command("members", "add", "Rocket", "rosa@example.com")
    rosa = Machine(tmp_path / "rosa", None)
    acme.machines["rosa"] = rosa
    rosa.start(acme.server, token)
    rosa.command("project", "bind", "Rocket")
    rosa.sync()
    with rosa.agent() as agent:
        stored = agent.store("create", path="notes/rosa.md", body="# Rosa\n")
        os.kill(rosa.pid(), 9)
        error = refused(agent, "load", {"ids": ["notes/rosa.md"]})
        assert error.code == "daemon_unavailable"
        assert "interleaf daemon start" in str(error)
        rosa.command("daemon", "start")
        assert agent.load("notes/rosa.md")[0]["resource_id"] == stored["resource_id"]
    rosa.sync()
    assert {d["sync_status"] for d in rosa.drafts()} == {"synced"}

"""Teams of real processes, one a module; the models are prepared once for all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.harness import Agent, Machine, Team, ToolError, team, wait_until

ACTIVATION_NOT_READY = ("search_index_preparing", "search_model_preparing", "project_not_synced")


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Team]:
    """A server, its owner Olga on a machine of hers, and the Project Rocket bound to her checkout."""
    with team(tmp_path_factory.mktemp("acme") / "team", models_dir) as made:
        yield made


@pytest.fixture(scope="module")
def olga(acme: Team) -> Machine:
    """The owner's machine."""
    return acme.owner


@pytest.fixture(scope="module")
def maya(acme: Team) -> Machine:
    """An ordinary member's machine, bound to the same Project."""
    return acme.member("maya")


@pytest.fixture
def agent(olga: Machine) -> Iterator[Agent]:
    """An agent in Olga's checkout."""
    with olga.agent() as connected:
        yield connected


def activated(agent: Agent, query: str, path: str) -> dict[str, object]:
    """Activate until a fragment of ``path`` comes back; bounded."""

    def found() -> dict[str, object] | None:
        try:
            answer = agent.activate(query)
        except ToolError as error:
            if error.code in ACTIVATION_NOT_READY:
                return None
            raise
        return answer if any(fragment["path"] == path for fragment in answer["fragments"]) else None

    return wait_until(found, f"a fragment of {path} for {query!r}")

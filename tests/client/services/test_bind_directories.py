from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from client.services.bind_directories import BindDirectories
from shared_schema.daemon_contract import AgentScope, BindCall, UnbindCall, WorkingDirectory
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.local_world import PROJECT, LocalWorld


@pytest.fixture
def bindings(world: LocalWorld) -> BindDirectories:
    world.publish([], commit="x", seq=1, project_id="prj_2")
    return BindDirectories(world.store, world.clock)


def folder(path: Path) -> str:
    path.mkdir(parents=True, exist_ok=True)
    return str(path)


def resolved(bindings: BindDirectories, path: str, main: str | None = None) -> str:
    return bindings.resolve(WorkingDirectory(path=path, main_checkout=main)).project_id


@pytest.mark.requirement("binding.longest")
def test_the_longest_bound_ancestor_wins(bindings: BindDirectories, tmp_path: Path) -> None:
    outer, inner = folder(tmp_path / "code"), folder(tmp_path / "code" / "app")
    bindings.bind(BindCall(directory=outer, project=PROJECT))
    bindings.bind(BindCall(directory=inner, project="prj_2"))

    assert resolved(bindings, f"{inner}/src/deep") == "prj_2"
    assert resolved(bindings, inner) == "prj_2"
    assert resolved(bindings, f"{outer}/other") == PROJECT
    # A longer name is no child.
    assert resolved(bindings, f"{outer}/application") == PROJECT


@pytest.mark.requirement("binding.worktree")
def test_the_main_checkout_stands_in_only_when_no_ancestor_is_bound(
    bindings: BindDirectories, tmp_path: Path
) -> None:
    main, tree = folder(tmp_path / "main"), folder(tmp_path / "tree")
    bindings.bind(BindCall(directory=main, project=PROJECT))
    assert resolved(bindings, f"{tree}/src", main) == PROJECT

    bindings.bind(BindCall(directory=tree, project="prj_2"))
    assert resolved(bindings, f"{tree}/src", main) == "prj_2"


@pytest.mark.requirement("binding.verify")
def test_a_scope_is_verified_against_what_its_directory_means_now(
    bindings: BindDirectories, tmp_path: Path
) -> None:
    here = folder(tmp_path / "code")
    scope = AgentScope(project_id=PROJECT, directory=WorkingDirectory(path=here))

    def code_of(action: Callable[[], object]) -> ErrorCode:
        with pytest.raises(InterleafError) as refused:
            action()
        return refused.value.code

    assert code_of(lambda: bindings.verify(scope)) is ErrorCode.PROJECT_BINDING_NOT_FOUND
    bindings.bind(BindCall(directory=here, project=PROJECT))
    bindings.verify(scope)
    bindings.bind(BindCall(directory=here, project="prj_2"))
    assert code_of(lambda: bindings.verify(scope)) is ErrorCode.PROJECT_BINDING_CHANGED


def test_a_directory_is_bound_in_its_canonical_form_and_once(
    bindings: BindDirectories, tmp_path: Path
) -> None:
    real = tmp_path / "real"
    folder(real)
    link = tmp_path / "link"
    link.symlink_to(real)

    made = bindings.bind(BindCall(directory=str(link), project=PROJECT))
    bindings.bind(BindCall(directory=str(real), project="prj_2"))

    assert (made.directory, made.project_name, made.guide_path) == (
        str(real.resolve()),
        "Alpha",
        "CLUMSIES.md",
    )
    assert [(item.directory, item.project_id) for item in bindings.list().bindings] == [
        (str(real.resolve()), "prj_2")
    ]


def test_a_binding_outlives_its_directory_and_can_still_be_removed(
    bindings: BindDirectories, tmp_path: Path
) -> None:
    here = tmp_path / "code"
    bindings.bind(BindCall(directory=folder(here), project=PROJECT))
    here.rmdir()

    assert bindings.unbind(UnbindCall(directory=str(here))).count == 1
    assert bindings.unbind(UnbindCall(directory=str(here))).count == 0


@pytest.mark.parametrize("directory", ["relative", "/none/such/folder", "/bad\0name"])
def test_what_is_no_directory_is_not_bound(bindings: BindDirectories, directory: str) -> None:
    with pytest.raises(InterleafError) as refused:
        bindings.bind(BindCall(directory=directory, project=PROJECT))
    assert refused.value.code is ErrorCode.INVALID_ARGUMENTS
    assert bindings.list().bindings == []


def test_a_name_of_two_projects_or_of_none_binds_nothing(bindings: BindDirectories, tmp_path: Path) -> None:
    here = folder(tmp_path / "code")
    codes = []
    for name in ("Alpha", "Beta"):
        with pytest.raises(InterleafError) as refused:
            bindings.bind(BindCall(directory=here, project=name))
        codes.append(refused.value.code)
    assert codes == [ErrorCode.INVALID_ARGUMENTS, ErrorCode.NOT_FOUND]

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from shared_schema.directories import (
    Directory,
    bound_directory,
    canonical_directory,
    longest_bound,
    read_guides,
)

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]


def git(directory: Path, *arguments: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run([*GIT, *arguments], cwd=directory, env=environment, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    main = Path(os.path.realpath(tmp_path)) / "main"
    main.mkdir()
    git(main, "init")
    git(main, "commit", "--allow-empty", "-m", "first")
    return main


def test_links_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert canonical_directory(tmp_path / "link").path == os.path.realpath(tmp_path / "real")


def test_a_main_checkout_has_no_other_one(checkout: Path) -> None:
    assert canonical_directory(checkout).main_checkout is None


@pytest.mark.requirement("binding.worktree")
def test_a_linked_worktree_knows_its_main_checkout_at_the_same_depth(checkout: Path) -> None:
    worktree = checkout.parent / "feature"
    git(checkout, "worktree", "add", str(worktree))
    (worktree / "packages" / "a").mkdir(parents=True)
    assert canonical_directory(worktree).main_checkout == str(checkout)
    assert canonical_directory(worktree / "packages" / "a").main_checkout == str(checkout / "packages" / "a")


def test_a_submodule_is_no_worktree(checkout: Path) -> None:
    inner = checkout.parent / "inner"
    inner.mkdir()
    git(inner, "init")
    git(inner, "commit", "--allow-empty", "-m", "first")
    git(checkout, "-c", "protocol.file.allow=always", "submodule", "add", str(inner), "lib")
    assert (checkout / "lib" / ".git").is_file()
    assert canonical_directory(checkout / "lib").main_checkout is None


def test_a_worktree_of_a_bare_repository_has_no_main_checkout(checkout: Path) -> None:
    bare = checkout.parent / "bare.git"
    git(checkout.parent, "clone", "--bare", str(checkout), str(bare))
    git(bare, "worktree", "add", str(checkout.parent / "tree"))
    assert canonical_directory(checkout.parent / "tree").main_checkout is None


@pytest.mark.parametrize("text", ["", "nonsense", "gitdir: /does/not/exist", "gitdir: \x00"])
def test_a_broken_git_file_is_no_worktree(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)
    assert canonical_directory(tmp_path).main_checkout is None


def test_the_longest_bound_ancestor_wins() -> None:
    bound = {"/a", "/a/b", "/a/bc"}
    assert longest_bound("/a/b/c", bound) == "/a/b"
    assert longest_bound("/a/b", bound) == "/a/b"
    assert longest_bound("/a/bcd", bound) == "/a"
    assert longest_bound("/z", bound) is None


def test_a_worktrees_own_binding_wins_over_its_main_checkouts() -> None:
    directory = Directory(path="/w/x", main_checkout="/m/x")
    assert bound_directory(directory, {"/m", "/w"}) == "/w"
    assert bound_directory(directory, {"/m"}) == "/m"
    assert bound_directory(directory, set()) is None


@pytest.mark.parametrize("content", ["", "[]", "{", "\udcff"])
def test_a_broken_guide_mirror_names_no_guide(tmp_path: Path, content: str) -> None:
    file = tmp_path / "guides.json"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert read_guides(file) == {}
    assert read_guides(tmp_path / "missing") == {}


def test_the_guide_mirror_is_read(tmp_path: Path) -> None:
    file = tmp_path / "guides.json"
    file.write_text(json.dumps({"/a": "guides/AGENTS.md", "/b": 3}))
    assert read_guides(file) == {"/a": "guides/AGENTS.md"}

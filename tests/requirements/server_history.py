"""History, blame, revert and the check."""

from __future__ import annotations

from typing import Final

from tests.requirements.form import R

PROMISES: Final[tuple[R, ...]] = (
    R(
        "history.resource",
        "a resource's history names each change, its commit and its Review",
        "server",
    ),
    R("history.log", "a Project's and the Organization's commits are read newest first, in pages", "server"),
    R("revert.inverse", "a merged Review is taken back by an ordinary Review of its inverse", "server"),
    R("revert.conflict", "a revert never overwrites a later edit of the same lines unseen", "domain"),
    R("history.private", "a Review in a history is described only to those who may read it", "domain"),
    R("blame.lines", "blame names for each line once the commit that last changed it", "server"),
    R("history.cli", "history and blame are read at the command line, by path or id", "server"),
    R("blame.bounded", "a long history is followed only so far, and the answer says so", "quality"),
)

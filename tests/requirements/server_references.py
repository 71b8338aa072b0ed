"""Reconciliation, Org references and adaptations."""

from __future__ import annotations

from typing import Final

from tests.requirements.form import R

PROMISES: Final[tuple[R, ...]] = (
    R(
        "reconcile.table",
        "every pair of changes has its candidate, and each conflict can be resolved",
        "domain",
    ),
    R("reconcile.no_markers", "a resolution with fresh conflict markers is refused", "domain"),
)

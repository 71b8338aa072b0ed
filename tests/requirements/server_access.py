"""Permissions and tokens."""

from __future__ import annotations

from typing import Final

from tests.requirements.form import R

PROMISES: Final[tuple[R, ...]] = ()

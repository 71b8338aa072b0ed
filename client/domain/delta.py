"""What an agent has to be told, given what it was told before.

``add`` and ``replace`` carry content, ``reuse`` names content that the agent still has, ``removed``
names known units that no longer exist or may no longer be seen. A known unit that is merely not
relevant now stays known and is not mentioned, an edited one neither: it is replaced once it is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

KNOWN_UNITS: Final = 4_096
"""Known units kept in one state; the longest unmentioned are forgotten first, and so sent again, and
their end is not told. At twelve fragments an answer that takes 341 answers of new text alone."""


class Action(StrEnum):
    """What a fragment is to the agent."""

    ADD = "add"
    REPLACE = "replace"
    REUSE = "reuse"


@dataclass(frozen=True, slots=True)
class KnownUnit:
    """A unit as it was sent: its fragment hash, and whose it is."""

    content_hash: str
    resource_id: str


class SelectedUnit(Protocol):
    """A selected unit: ``client.domain.chunking.Unit`` has these."""

    @property
    def unit_key(self) -> str: ...  # noqa: D102 - named as in Unit
    @property
    def content_hash(self) -> str: ...  # noqa: D102
    @property
    def resource_id(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Delta:
    """``actions`` belong to the selected units, in their order; ``known`` is the next state."""

    actions: tuple[Action, ...]
    removed: tuple[str, ...]
    known: Mapping[str, KnownUnit]


def compute(
    known: Mapping[str, KnownUnit],
    selected: Sequence[SelectedUnit],
    is_live: Callable[[str, str], bool],
) -> Delta:
    """Compare what the agent knows with what was selected for it.

    ``is_live(unit_key, resource_id)`` tells whether a unit exists in the Effective Memory that the
    answer is made of. Selected units are live by definition. Costs in proportion to ``known`` and
    ``selected``.
    """
    chosen = {unit.unit_key for unit in selected}
    removed = tuple(
        key for key, unit in known.items() if key not in chosen and not is_live(key, unit.resource_id)
    )
    # Later entries were mentioned later: selected ones move to the end.
    following = {key: unit for key, unit in known.items() if key not in chosen}
    for key in removed:
        del following[key]
    actions: list[Action] = []
    for unit in selected:
        before = known.get(unit.unit_key)
        if before is None:
            actions.append(Action.ADD)
        elif before.content_hash != unit.content_hash:
            actions.append(Action.REPLACE)
        else:
            actions.append(Action.REUSE)
        following[unit.unit_key] = KnownUnit(unit.content_hash, unit.resource_id)
    for key in list(following)[: max(0, len(following) - KNOWN_UNITS)]:
        del following[key]
    return Delta(tuple(actions), removed, following)

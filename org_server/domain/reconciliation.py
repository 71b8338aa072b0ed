"""How a Draft stands against what was published since its base: two questions, kept apart.

``freshness`` asks whether the ref moved at all; ``reconciliation`` whether both changes go
together. Being behind is no conflict: where only other resources moved, the Draft's result is the
same on the new base.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from org_server.domain.states import HashedState
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.rules.reconcile import Reconciled, reconcile

Occupied = Callable[[str], str | None]
"""Which other resource stands in the way of a path now, if any."""


@dataclass(frozen=True)
class Standing:
    """How one Draft stands. ``conflicts`` names the kinds, each once, in order."""

    freshness: Freshness
    reconciliation: Reconciliation
    moved: bool
    """Whether its own resource changed since its base."""
    conflicts: tuple[str, ...] = ()


CURRENT = Standing(Freshness.CURRENT, Reconciliation.UNKNOWN, moved=False)


def merge_states(
    base: HashedState,
    current: HashedState,
    draft: HashedState,
    texts: Mapping[str, str],
    occupied: Occupied | None,
) -> Reconciled:
    """Reconcile three states; ``texts`` has their bodies by content hash."""
    return reconcile(base.with_body(texts), current.with_body(texts), draft.with_body(texts), occupied)


def texts_needed(base: HashedState, current: HashedState, draft: HashedState) -> set[str]:
    """Return the hashes of the bodies that `judge` needs: none unless the own resource moved."""
    if base == current:
        return set()
    return {state.content_hash for state in (base, current, draft) if state.content_hash is not None}


def judge(
    behind: bool,
    base: HashedState,
    current: HashedState,
    draft: HashedState,
    texts: Mapping[str, str],
    occupied: Occupied,
) -> Standing:
    """Return how a Draft stands; ``texts`` holds at least what `texts_needed` names."""
    if not behind:
        return CURRENT
    if base == current:
        # Unmoved: the result is the Draft's own state, so only its path can be in the way.
        clash = draft.exists and occupied(draft.path) is not None
        kinds: tuple[str, ...] = ("path_occupied",) if clash else ()
    else:
        merged = merge_states(base, current, draft, texts, occupied)
        kinds = tuple(dict.fromkeys(conflict.kind for conflict in merged.conflicts))
    outcome = Reconciliation.CONFLICTS if kinds else Reconciliation.CLEAN
    return Standing(Freshness.BEHIND, outcome, moved=base != current, conflicts=kinds)

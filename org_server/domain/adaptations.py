"""Which Org references a Project shows: those it selects, that exist, and that nothing adapts."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple


class ReferenceChanges(NamedTuple):
    """What has to change in a Project's view, each sorted by id."""

    show: list[str]
    hide: list[str]


def reference_changes(
    touched: Iterable[str],
    *,
    selected: Collection[str],
    published: Collection[str],
    adapted: Collection[str],
    shown: Collection[str],
) -> ReferenceChanges:
    """Return which of the ``touched`` Org resources enter and which leave a Project's view.

    ``selected``, ``published`` (existing in the Organization) and ``adapted`` (with an active
    adaptation here) describe the state after the change; ``shown`` the view before it.
    """
    changes = ReferenceChanges([], [])
    for source_id in sorted(set(touched)):
        wanted = source_id in selected and source_id in published and source_id not in adapted
        if wanted and source_id not in shown:
            changes.show.append(source_id)
        elif not wanted and source_id in shown:
            changes.hide.append(source_id)
    return changes


class AdaptationLinks(NamedTuple):
    """The adaptations after a set of changes: source id → adapting resource, and the rivals.

    ``rivals`` maps a changed resource to another one that adapts the same source.
    """

    active: dict[str, str]
    rivals: dict[str, str]


def link_adaptations(active: Mapping[str, str], changed: Mapping[str, str | None]) -> AdaptationLinks:
    """Return the adaptations after ``changed``, with at most one for each source.

    ``active``: source id → adapting resource before. ``changed``: resource id → the source that it
    adapts afterwards, None when it adapts none or is removed.
    """
    after = {source: resource for source, resource in active.items() if resource not in changed}
    rivals: dict[str, str] = {}
    for resource_id, source_id in changed.items():
        if source_id is None:
            continue
        if source_id in after:
            rivals[resource_id] = after[source_id]
        else:
            after[source_id] = resource_id
    return AdaptationLinks(after, rivals)

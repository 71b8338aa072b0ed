"""What a commit changes in an authority's view."""

from typing import NamedTuple

from org_server.domain.states import GONE, HashedState
from shared_schema.memory import OrgSource, Scope


class ViewChange(NamedTuple):
    """One resource of the view after the commit; a state that does not exist removes it.

    ``scope`` is ``org`` for an Org resource, in the Organization's own view and as a reference in
    a Project's. The text behind the state's hash has to be stored already.
    """

    resource_id: str
    scope: Scope
    state: HashedState


def show_reference(resource_id: str, state: HashedState, org_commit: str) -> ViewChange:
    """Return the change that puts an Org resource, as published by ``org_commit``, into a Project's view.

    A reference names its own version in ``org_source``, so that a reader can tell which one it saw.
    """
    source = OrgSource(resource_id=resource_id, commit_id=org_commit)
    shown = HashedState(True, state.path, state.description, state.content_hash, source)
    return ViewChange(resource_id, Scope.ORG, shown)


def hide_reference(resource_id: str) -> ViewChange:
    """Return the change that takes an Org reference out of a Project's view."""
    return ViewChange(resource_id, Scope.ORG, GONE)

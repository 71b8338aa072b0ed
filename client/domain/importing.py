"""What an imported document comes to in a Project: which resource it means, and which Draft it makes.

Pure: the decisions themselves are those of `client.domain.draft_log`.
"""

from __future__ import annotations

from client.domain.draft_checks import Change, Situation
from client.domain.draft_log import Decision, Ids, decide_change, decide_create
from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from shared_schema.drafts import Reconciliation
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.transfer_contract import ImportDocument


def meant(memory: EffectiveMemory, document: ImportDocument) -> EffectiveResource | None:
    """Return the visible resource that the document is a version of: by id, then by path; or None."""
    if document.resource_id is not None and (item := memory.by_id.get(document.resource_id)) is not None:
        return item
    return memory.by_path.get(document.path)


def decide_new(situation: Situation, ids: Ids, document: ImportDocument, scope: Scope) -> Decision:
    """Decide on a document that the Project does not show; raises what `decide_create` does."""
    # The Organization's newest commit is not known here; a new resource needs no base there.
    base_commit = situation.memory.commit_id if scope is Scope.PROJECT else None
    wanted = Change(document.path, document.body, document.description)
    return decide_create(situation, ids, wanted, scope, base_commit)


def decide_changed(
    situation: Situation, ids: Ids, item: EffectiveResource, document: ImportDocument, scope: Scope
) -> Decision:
    """Decide on other content for a resource; its path stays.

    An Org reference becomes an adaptation, or with ``scope`` org a proposal to the Organization.
    Raises what `decide_change` does, ``reconciliation_required`` for an open Draft in conflict, which
    an import does not resolve, and ``invalid_arguments`` where the Organization is meant and the
    resource is the Project's own.
    """
    draft = situation.draft
    if draft is not None and draft.reconciliation is Reconciliation.CONFLICTS:
        raise InterleafError(
            ErrorCode.RECONCILIATION_REQUIRED,
            "The open Draft on this document is in conflict. "
            f"Resolve it first: interleaf draft edit {draft.draft_id}",
            details={"draft_id": draft.draft_id},
        )
    if draft is None and scope is Scope.ORG and item.scope is not Scope.ORG:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            "A document of the Project itself is at this path, so it cannot be one of the Organization.",
        )
    asked = Scope.ORG if scope is Scope.ORG else None
    change = Change(body=document.body, description=document.description)
    return decide_change(situation, ids, item, change, asked)

"""Which Draft a person means: by its id, or by its resource's id or path."""

from __future__ import annotations

import unicodedata

from client.domain.local_draft import LocalDraft
from client.services.bind_directories import find_project
from client.services.draft_writing import draft_not_found
from client.store.unit_of_work import UnitOfWork
from shared_schema.daemon_contract import DraftCall
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import is_id


def find_draft(uow: UnitOfWork, call: DraftCall) -> LocalDraft:
    """Return the Draft with this id, or the active one on this resource.

    Without a Project every Project's Drafts are looked at. Raises ``draft_not_found``, and
    ``invalid_arguments`` when several fit.
    """
    project_id = find_project(uow, call.project).project_id if call.project else None
    if is_id(call.draft, "drf"):
        draft = uow.drafts.get(call.draft)
        if draft is None or (project_id is not None and draft.project_id != project_id):
            raise draft_not_found(call.draft)
        return draft
    path = unicodedata.normalize("NFC", call.draft)
    active = uow.drafts.list(project_id, active_only=True)
    fitting = [draft for draft in active if draft.resource_id == call.draft]
    fitting = fitting or [draft for draft in active if draft.shown_path() == path]
    if not fitting:
        raise draft_not_found(call.draft)
    if len(fitting) > 1:
        problem = f"means {len(fitting)} Drafts; give a Draft id, or name the Project"
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"draft: {problem}.",
            details={
                "fields": [{"field": "draft", "problem": problem}],
                "drafts": [draft.draft_id for draft in fitting],
            },
        )
    return fitting[0]

"""Freezing the corpus that a run searched, and reading it back exactly."""

from __future__ import annotations

from client.domain.case_corpus import corpus_digest
from client.domain.effective_memory import EffectiveMemory
from client.services.project_memory import ProjectMemory, readable_project
from client.store.activations import RunRow
from client.store.evaluation_corpora import StoredDocument
from client.store.unit_of_work import UnitOfWork
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.rules.hashing import content_hash


def freeze(uow: UnitOfWork, memory: ProjectMemory, run: RunRow, now: int) -> str:
    """Keep what a run searched, unless it is kept already; return its memory hash.

    Raises:
        InterleafError: ``run_outdated`` when the Project shows something else by now, and what
            `readable_project` raises.
    """
    wanted = run.trace.get("memory_hash")
    readable_project(uow, run.project_id)
    if isinstance(wanted, str) and uow.corpora.get(wanted) is not None:
        return wanted
    present = memory.current(uow, run.project_id).memory
    if present.hash != wanted:
        raise InterleafError(
            ErrorCode.RUN_OUTDATED,
            "The memory that this run searched is not there any more: documents or Drafts changed since, "
            "so the run cannot be repeated. Let the agent ask the same again, then use the newest run of: "
            "interleaf runs list",
            details={"run_id": run.run_id, "searched": wanted, "present": present.hash},
        )
    uow.corpora.add(present, now)
    return present.hash


def frozen_memory(uow: UnitOfWork, memory_hash: str) -> EffectiveMemory | None:
    """Return a frozen corpus as the memory that it was; none when it is not kept any more.

    Raises:
        InterleafError: ``database_corrupt`` when it is not what was frozen.
    """
    row = uow.corpora.get(memory_hash)
    if row is None:
        return None
    stored = uow.corpora.documents(memory_hash)
    digests = [each.document.digest for each in stored]
    if corpus_digest(digests) != row.digest or not all(map(_is_whole, stored)):
        raise InterleafError(
            ErrorCode.DATABASE_CORRUPT,
            "A frozen corpus is not what was frozen, so its cases cannot be replayed. Freeze them anew "
            "from newer runs with: interleaf eval case freeze CASE RUN",
            details={"corpus": memory_hash},
        )
    resources = [each.document.with_text(each.body) for each in stored]
    return EffectiveMemory.of(row.project_id, row.commit_id, resources)


def _is_whole(stored: StoredDocument) -> bool:
    return content_hash(stored.body) == stored.document.content_hash

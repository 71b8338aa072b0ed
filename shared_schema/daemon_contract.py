"""The local protocol between the resident daemon and what runs beside it.

One POST per call on the local socket: ``/rpc/<method>`` with ``{"marker", "params"}``; the answer is
``{"result"}`` or ``{"error": {"code", "message", "details"}}``. Only ``hello``, ``daemon_status`` and
``stop`` are answered whatever the caller's marker: every other method is refused with
``agent_runtime_mismatch`` before anything is read or written.

Agent-scoped calls name the Project *and* the directory it was resolved from; the daemon resolves
the directory again and refuses when it means another Project by now.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from shared_schema import limits
from shared_schema.drafts import DraftStatus, Freshness, Reconciliation
from shared_schema.evaluation_contract import (
    CaseCall,
    CaseCreateCall,
    CaseDeleteCall,
    CaseDetail,
    CaseFreezeCall,
    CaseJudgeCall,
    CaseList,
    CaseListCall,
    EvaluationExport,
    ExportCall,
    ExportedPage,
    ExportPageCall,
    ReportCall,
    ReportState,
    ReportStateCall,
)
from shared_schema.explanations import ExplainCall, Explained
from shared_schema.memory import Contract, OrgSource, Provenance, ResourceState, Scope
from shared_schema.org_contract import Me
from shared_schema.release import RELEASE
from shared_schema.sync_status import ParkingCause, SyncStatus
from shared_schema.tool_contract import Activate, Load, Store
from shared_schema.transfer_contract import ExportCall as MemoryExportCall
from shared_schema.transfer_contract import ExportedMemory, ImportAnswer, ImportCall

AGENT_PROTOCOL: Final = 1
"""Raised with every incompatible change of what proxy and daemon say to each other."""

LaxScope = Annotated[Scope, Field(strict=False)]


class RuntimeMarker(Contract):
    """Who speaks: protocol revision and build identity."""

    protocol: int
    release: str
    fingerprint: str
    """SHA-256 over names and contents of the installed files, shortened to 16 hex digits."""


@cache
def runtime_marker() -> RuntimeMarker:
    """Return this process's marker, computed once from the files it was started from."""
    return RuntimeMarker(protocol=AGENT_PROTOCOL, release=RELEASE, fingerprint=build_fingerprint())


def build_fingerprint() -> str:
    """Hash the installed sources of both packages that the local protocol runs through."""
    root = Path(__file__).resolve().parent.parent
    digest = sha256()
    for package in ("client", "shared_schema"):
        for file in sorted((root / package).rglob("*.py")):
            digest.update(file.relative_to(root).as_posix().encode())
            digest.update(b"\0")
            digest.update(file.read_bytes())
            digest.update(b"\0")
    return digest.hexdigest()[:16]


class WorkingDirectory(Contract):
    """A canonical directory (links resolved), and its main checkout when it is a linked worktree."""

    path: str
    main_checkout: str | None = None


class AgentScope(Contract):
    """Which Project an agent's call means, and how that was resolved."""

    project_id: str
    directory: WorkingDirectory


class Hello(Contract):
    """Answer of ``hello``."""

    marker: RuntimeMarker
    pid: int


class Empty(Contract):
    """No parameters, or nothing to answer."""


# --- agent-scoped ---------------------------------------------------------------------------


class ActivateCall(Contract):
    """``activate_memory``."""

    scope: AgentScope
    activate: Activate


class LoadCall(Contract):
    """``load_memory``."""

    scope: AgentScope
    load: Load


class StoreCall(Contract):
    """``store_draft_operation``. ``operation_id`` makes a repeated call harmless."""

    scope: AgentScope
    store: Store
    operation_id: str | None = Field(default=None, pattern=r"^lop_[A-Za-z0-9_.-]{1,120}$")


class ProjectCall(Contract):
    """A call about one Project, by id or unique name, from a person's command line."""

    project: str


class IndexStatus(Contract):
    """``search_index_status`` and ``rebuild_search_index``."""

    project_id: str
    state: Literal["none", "building", "ready", "failed"]
    index_revision: str | None
    units: int
    resources: int
    done: int
    total: int
    lag: bool
    reranker: str
    error: str | None = None


# --- bindings and account -------------------------------------------------------------------


class Binding(Contract):
    """Directory → Project on this machine."""

    directory: str
    project_id: str
    project_name: str | None = None
    guide_path: str | None = None


class Bindings(Contract):
    """``list_bindings``."""

    bindings: list[Binding]


class BindCall(Contract):
    """``bind``: one directory to one Project; an existing binding is replaced."""

    directory: str
    project: str


class UnbindCall(Contract):
    """``unbind``."""

    directory: str


class ResolveCall(Contract):
    """``resolve_binding``: the longest bound ancestor wins."""

    directory: WorkingDirectory


class LoginCall(Contract):
    """``login``; the token never stands in an argument list."""

    server_url: str
    token: str = Field(min_length=1, max_length=1_000, repr=False)


class Account(Contract):
    """Who is signed in where."""

    server_url: str
    me: Me


# --- drafts ---------------------------------------------------------------------------------


class DraftItem(Contract):
    """One Draft on this machine."""

    id: str
    resource_id: str
    project_id: str
    scope: Scope
    path: str
    status: DraftStatus
    freshness: Freshness
    reconciliation: Reconciliation
    sync_status: SyncStatus
    """The least advanced of its operations: failed, retrying, syncing, queued, then synced."""
    review_id: str | None
    operations: int
    adapts: str | None
    created_at: int
    updated_at: int


class DraftList(Contract):
    """``list_drafts``."""

    drafts: list[DraftItem]


class DraftListCall(Contract):
    """``list_drafts``: active ones, or all."""

    project: str | None = None
    all: bool = False


class DraftCall(Contract):
    """``show_draft`` and ``discard_draft``: by Draft id, or by resource id or path in a Project."""

    draft: str
    project: str | None = None


class DraftDetail(Contract):
    """``show_draft``."""

    draft: DraftItem
    base: ResourceState
    state: ResourceState
    current: ResourceState
    conflicts: list[str]
    """Kinds of what does not go together."""
    diff: str


class DraftCreateCall(Contract):
    """``create_draft``: a person's new document."""

    project: str
    scope: LaxScope
    path: str
    body: str
    description: str | None = None


class DraftEditCall(Contract):
    """``edit_draft``: a complete new body (path, description) for a resource or its open Draft.

    In conflict the given text is the resolution: it is recorded on the newest published state.
    """

    project: str
    resource: str
    """A resource id, a Draft id or an exact path."""
    scope: LaxScope | None = None
    """``org`` proposes a change of a selected Org reference itself instead of an adaptation."""
    body: str | None = None
    path: str | None = None
    description: str | None = None
    delete: bool = False
    expected_hash: str | None = None


class DraftChanged(Contract):
    """What a person's Draft operation came to."""

    local_operation_id: str
    draft_id: str
    resource_id: str
    path: str | None
    queued: bool
    sync_status: SyncStatus
    content_hash: str | None = None
    adapts: str | None = None


class Offer(Contract):
    """One of the submitted Drafts that shall be offered to the Organization, too, after the merge.

    As a change of the Org resource ``target_id``, else as a new one at ``path`` (default: its own);
    an adaptation without either goes to its Org source.
    """

    draft: str
    path: str | None = None
    target_id: str | None = None


class SubmitCall(Contract):
    """``submit_drafts``: pushes what is queued, then opens one Review of the Drafts, in order."""

    drafts: list[str] = Field(min_length=1, max_length=limits.REVIEW_DRAFTS)
    """Draft ids, resource ids or paths; the latter need ``project``."""
    project: str | None = None
    title: str | None = Field(default=None, max_length=limits.TITLE_CHARACTERS)
    description: str = ""
    contribute: list[Offer] = Field(default_factory=list, max_length=limits.REVIEW_DRAFTS)


class Submitted(Contract):
    """The new Review."""

    review_id: str
    title: str
    draft_ids: list[str]


# --- memory as a person sees it -------------------------------------------------------------


class MemoryItem(Contract):
    """One visible resource without its body."""

    resource_id: str
    scope: Scope
    path: str
    title: str
    description: str
    content_hash: str
    provenance: Provenance
    org_source: OrgSource | None
    draft_id: str | None


class MemoryList(Contract):
    """``list_memory``."""

    project_id: str
    commit_id: str | None
    hash: str
    resources: list[MemoryItem]


class MemoryCall(Contract):
    """``show_memory``: by id or exact path."""

    project: str
    resource: str


# --- outbox, sync, models, runs -------------------------------------------------------------


class OutboxItem(Contract):
    """One operation on its way."""

    local_operation_id: str
    draft_id: str
    project_id: str
    ordinal: int
    kind: str
    path: str | None
    sync_status: SyncStatus
    attempts: int
    next_attempt_at: int | None
    cause: ParkingCause | None
    error_code: str | None
    error_message: str | None
    retry_can_help: bool | None
    created_at: int


class Outbox(Contract):
    """``list_outbox``: what is not synced; with ``all`` also what is."""

    operations: list[OutboxItem]


class OutboxListCall(Contract):
    """``list_outbox``."""

    all: bool = False


class OutboxRetryCall(Contract):
    """``retry_outbox``: the failed or waiting operation named, or all of them."""

    local_operation_id: str | None = None


class Count(Contract):
    """How many rows an action touched."""

    count: int


class SyncCall(Contract):
    """``sync_now``: wake the worker; with ``wait`` answer when all is pushed and pulled."""

    wait: bool = False
    timeout_seconds: float = Field(default=60, ge=0, le=600)


class SyncResult(Contract):
    """Operations not yet synced, operations failed, and Projects whose last round failed."""

    pending: int
    failed: int
    projects_failing: list[str] = Field(default_factory=list)
    error: str | None = None


class ModelStatus(Contract):
    """``models_status`` and ``prepare_models``."""

    profile: str
    stage: str
    """``waiting``, ``download``, ``verify``, ``convert``, ``self_test``, ``ready`` or ``failed``."""
    ready: bool
    loaded: bool = False
    """Whether it is in memory; one that is not loads with the next question, in 1 to 2 seconds."""
    current_bytes: int
    total_bytes: int
    folder: str | None
    reranker: str
    error: str | None = None
    next_attempt_at: int | None = None


class ProjectStatus(Contract):
    """How one Project stands on this machine."""

    project_id: str
    name: str
    role: str | None
    access: bool
    commit_id: str | None
    commit_seq: int
    resources: int
    last_success_at: int | None
    last_error: str | None
    sync_counts: dict[str, int]
    drafts_behind: int
    drafts_conflicting: int
    index: IndexStatus


class DaemonStatus(Contract):
    """``daemon_status``."""

    pid: int
    version: str
    marker: RuntimeMarker
    home: str
    socket: str
    started_at: int
    account: Account | None
    server_url: str | None
    signed_out: bool
    last_sync_at: int | None
    last_sync_error: str | None
    run_write_error: str | None
    models: ModelStatus
    projects: list[ProjectStatus]
    bindings: int


class RunListCall(Contract):
    """``list_runs``, newest first."""

    project: str | None = None
    limit: int = Field(default=20, ge=1, le=limits.PAGE_MAX)


class RunItem(Contract):
    """One retrieval run in a list."""

    run_id: str
    project_id: str
    created_at: int
    query: str
    index_revision: str
    fragments: int
    latency_ms: float
    pinned: bool
    project_name: str | None = None


class RunList(Contract):
    """``list_runs``."""

    runs: list[RunItem]


class RunCall(Contract):
    """``show_run``."""

    run_id: str


class RunDetail(Contract):
    """``show_run``: the whole candidate trace."""

    run: RunItem
    trace: dict[str, object]


class RunPinCall(Contract):
    """``pin_run``: a pinned run is kept however many follow it."""

    run_id: str
    pinned: bool


METHODS: Final[dict[str, tuple[type[Contract], type[Contract] | None]]] = {
    # method: (parameters, answer). None: the answer of the tool contract.
    "hello": (Empty, Hello),
    "daemon_status": (Empty, DaemonStatus),
    "stop": (Empty, Empty),
    "activate_memory": (ActivateCall, None),
    "load_memory": (LoadCall, None),
    "store_draft_operation": (StoreCall, None),
    "search_index_status": (ProjectCall, IndexStatus),
    "rebuild_search_index": (ProjectCall, IndexStatus),
    "resolve_binding": (ResolveCall, Binding),
    "bind": (BindCall, Binding),
    "unbind": (UnbindCall, Count),
    "list_bindings": (Empty, Bindings),
    "login": (LoginCall, Account),
    "logout": (Empty, Count),
    "account": (Empty, Account),
    "list_memory": (ProjectCall, MemoryList),
    "show_memory": (MemoryCall, None),
    "list_drafts": (DraftListCall, DraftList),
    "show_draft": (DraftCall, DraftDetail),
    "create_draft": (DraftCreateCall, DraftChanged),
    "edit_draft": (DraftEditCall, DraftChanged),
    "discard_draft": (DraftCall, DraftChanged),
    "submit_drafts": (SubmitCall, Submitted),
    "import_drafts": (ImportCall, ImportAnswer),
    "export_memory": (MemoryExportCall, ExportedMemory),
    "list_outbox": (OutboxListCall, Outbox),
    "retry_outbox": (OutboxRetryCall, Count),
    "sync_now": (SyncCall, SyncResult),
    "models_status": (Empty, ModelStatus),
    "prepare_models": (Empty, ModelStatus),
    "list_runs": (RunListCall, RunList),
    "show_run": (RunCall, RunDetail),
    "pin_run": (RunPinCall, RunItem),
    "explain": (ExplainCall, Explained),
    "create_evaluation_case": (CaseCreateCall, CaseDetail),
    "list_evaluation_cases": (CaseListCall, CaseList),
    "show_evaluation_case": (CaseCall, CaseDetail),
    "judge_evaluation_case": (CaseJudgeCall, CaseDetail),
    "freeze_evaluation_case": (CaseFreezeCall, CaseDetail),
    "delete_evaluation_case": (CaseDeleteCall, Count),
    "start_evaluation_report": (ReportCall, ReportState),
    "evaluation_report": (ReportStateCall, ReportState),
    "export_evaluation": (ExportCall, EvaluationExport),
    "exported_documents": (ExportPageCall, ExportedPage),
}

UNMARKED_METHODS: Final = frozenset({"hello", "daemon_status", "stop"})
AGENT_METHODS: Final = frozenset({"activate_memory", "load_memory", "store_draft_operation"})

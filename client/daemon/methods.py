"""Which service answers which method of the local protocol."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from client.daemon.deadline import Deadline
from client.daemon.dispatch import Handler
from client.daemon.guide_mirror import GuideMirror
from client.daemon.status import StatusReport
from client.services.activate_memory import ActivateMemory
from client.services.bind_directories import BindDirectories
from client.services.edit_drafts import EditDrafts
from client.services.evaluation.case_report_jobs import CaseReports
from client.services.evaluation.cases import EvaluationCases
from client.services.evaluation.export import ExportCases
from client.services.explain_ranking import ExplainRanking
from client.services.export_memory import ExportMemory
from client.services.import_drafts import ImportDrafts
from client.services.load_memory import LoadMemory
from client.services.read_drafts import ReadDrafts
from client.services.read_memory import ReadMemory
from client.services.read_outbox import ReadOutbox
from client.services.read_runs import ReadRuns
from client.services.sign_in import SignIn
from client.services.store_draft_operation import StoreDraftOperation
from client.services.submit_drafts import SubmitDrafts
from client.services.sync_now import SyncNow
from shared_schema.daemon_contract import (
    ActivateCall,
    BindCall,
    Binding,
    Count,
    Empty,
    Hello,
    LoadCall,
    MemoryCall,
    ModelStatus,
    ProjectCall,
    ResolveCall,
    RuntimeMarker,
    StoreCall,
    UnbindCall,
)
from shared_schema.memory import Contract
from shared_schema.tool_contract import ActivateAnswer, LoadAnswer


@dataclass(frozen=True)
class Services:
    """Everything that answers calls."""

    marker: RuntimeMarker
    deadline: Deadline
    guides: GuideMirror
    status: StatusReport
    prepare_models: Callable[[], None]
    activate: ActivateMemory
    load: LoadMemory
    store: StoreDraftOperation
    bindings: BindDirectories
    edit_drafts: EditDrafts
    read_drafts: ReadDrafts
    submit: SubmitDrafts
    import_drafts: ImportDrafts
    export_memory: ExportMemory
    read_memory: ReadMemory
    outbox: ReadOutbox
    runs: ReadRuns
    explain: ExplainRanking
    cases: EvaluationCases
    case_reports: CaseReports
    export_cases: ExportCases
    account: SignIn
    sync: SyncNow


def handlers(services: Services, request_stop: Callable[[], None]) -> dict[str, Handler]:
    """Return the handler of every method; ``request_stop`` asks the process to end."""
    return {
        **_process(services, request_stop),
        **_agent(services),
        **_local(services),
        **_evaluation(services),
        "login": services.account.login,
        "logout": lambda _call: services.account.logout(),
        "account": lambda _call: services.account.account(),
        "list_drafts": services.read_drafts.list,
        "show_draft": services.read_drafts.show,
        "create_draft": services.edit_drafts.create,
        "edit_draft": services.edit_drafts.edit,
        "discard_draft": services.edit_drafts.discard,
        "submit_drafts": services.submit,
        "import_drafts": services.import_drafts,
        "export_memory": services.export_memory,
        "list_outbox": services.outbox.list,
        "retry_outbox": services.outbox.retry,
        "sync_now": services.sync,
        "list_runs": services.runs.list,
        "show_run": services.runs.show,
        "pin_run": services.runs.pin,
        "explain": services.explain,
    }


def _process(services: Services, request_stop: Callable[[], None]) -> dict[str, Handler]:
    def stop(_call: Empty) -> Empty:
        request_stop()
        return Empty()

    def prepare(_call: Empty) -> ModelStatus:
        services.prepare_models()
        return services.status.models()

    return {
        "hello": lambda _call: Hello(marker=services.marker, pid=os.getpid()),
        "daemon_status": lambda _call: services.status.daemon(),
        "stop": stop,
        "models_status": lambda _call: services.status.models(),
        "prepare_models": prepare,
    }


def _agent(services: Services) -> dict[str, Handler]:
    def activate(call: ActivateCall) -> ActivateAnswer:
        return services.deadline.run(lambda: services.activate(call.scope.project_id, call.activate))

    def load(call: LoadCall) -> LoadAnswer:
        return services.load(call.scope.project_id, call.load)

    def store(call: StoreCall) -> Contract:
        return services.store(call.scope.project_id, call.store, call.operation_id)

    return {"activate_memory": activate, "load_memory": load, "store_draft_operation": store}


def _local(services: Services) -> dict[str, Handler]:
    def bind(call: BindCall) -> Binding:
        bound = services.bindings.bind(call)
        services.guides.refresh()
        return bound

    def unbind(call: UnbindCall) -> Count:
        count = services.bindings.unbind(call)
        services.guides.refresh()
        return count

    def resolve(call: ResolveCall) -> Binding:
        # A proxy has just started; the next one's instructions shall name the newest guide.
        services.guides.refresh()
        return services.bindings.resolve(call.directory)

    def show_memory(call: MemoryCall) -> Contract:
        return services.read_memory.show(call.project, call.resource)

    def index_status(call: ProjectCall) -> Contract:
        return services.status.index(call.project)

    def rebuild(call: ProjectCall) -> Contract:
        return services.status.rebuild(call.project)

    return {
        "bind": bind,
        "unbind": unbind,
        "list_bindings": lambda _call: services.bindings.list(),
        "resolve_binding": resolve,
        "list_memory": lambda call: services.read_memory.list(call.project),
        "show_memory": show_memory,
        "search_index_status": index_status,
        "rebuild_search_index": rebuild,
    }


def _evaluation(services: Services) -> dict[str, Handler]:
    return {
        "create_evaluation_case": services.cases.create,
        "list_evaluation_cases": services.cases.list,
        "show_evaluation_case": services.cases.show,
        "judge_evaluation_case": services.cases.judge,
        "freeze_evaluation_case": services.cases.freeze,
        "delete_evaluation_case": services.cases.delete,
        "start_evaluation_report": services.case_reports.start,
        "evaluation_report": services.case_reports.state,
        "export_evaluation": services.export_cases.cases,
        "exported_documents": services.export_cases.page,
    }

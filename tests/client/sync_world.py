"""A real server, machines with real stores, and a network between them that a test can break."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
from sqlalchemy import text

from client.domain.local_draft import LocalDraft
from client.store.account import AccountRow
from client.store.outbox import OutboxRow
from client.store.unit_of_work import Store
from client.sync.engine import RoundResult, SyncEngine
from client.sync.org_client import OrgClient
from shared_schema.drafts import DraftOperation, OperationKind
from shared_schema.ids import new_id
from shared_schema.memory import ABSENT, ResourceState, Scope
from shared_schema.org_contract import API_PREFIX, Me
from shared_schema.sync_status import SyncStatus
from tests.org_server.harness import Caller, Server

URL = "http://127.0.0.1:9"
Fault = Callable[[httpx.Request, Callable[[], httpx.Response]], httpx.Response]


def drop_request(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def drop_answer(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
    send()
    raise httpx.ReadError("cut", request=request)


def duplicate(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
    send()
    return send()


def truncate(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
    whole = send()
    return httpx.Response(whole.status_code, content=whole.read()[: len(whole.content) // 2])


def wrong_json(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
    send()
    return httpx.Response(200, json={"hello": ["world"]})


def status(code: int, headers: dict[str, str] | None = None, *, after: bool = False) -> Fault:
    """Answer with a bare status, without or after letting the server act."""

    def fault(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
        if after:
            send()
        return httpx.Response(code, headers=headers, text="<html>a proxy</html>")

    return fault


def error(code: str, http_status: int) -> Fault:
    """Answer with an error in the contract's form."""
    body = {"error": {"code": code, "message": "no", "request_id": "req_1", "details": {}}}

    def fault(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
        return httpx.Response(http_status, json=body)

    return fault


@dataclass
class Network(httpx.BaseTransport):
    """Passes requests on to the server, as long as no fault says otherwise."""

    inner: httpx.BaseTransport
    faults: deque[Fault] = field(default_factory=deque)
    """Used up one a request."""
    standing: Callable[[httpx.Request], Fault | None] = lambda _request: None
    """Asked for every request that no single fault takes."""
    log: list[tuple[str, str, int]] = field(default_factory=list)
    """Method, path and bytes of the exchange, both heads included."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()

        def send() -> httpx.Response:
            response = self.inner.handle_request(request)
            response.read()
            return httpx.Response(response.status_code, headers=response.headers, content=_body(response))

        fault = self.faults.popleft() if self.faults else self.standing(request)
        path = request.url.path.removeprefix(API_PREFIX)
        self.log.append((request.method, path, 0))
        response = send() if fault is None else fault(request, send)
        self.log[-1] = (request.method, path, _size(request) + _size_of_answer(response))
        return response

    def paths(self, method: str = "") -> list[str]:
        return [path for sent, path, _ in self.log if not method or sent == method]


def _body(response: httpx.Response) -> bytes:
    response.headers.pop("content-encoding", None)
    return response.content


def _size(request: httpx.Request) -> int:
    line = f"{request.method} {request.url.raw_path.decode()} HTTP/1.1\r\n"
    return len(line) + _headers(request.headers) + len(request.content)


def _size_of_answer(response: httpx.Response) -> int:
    line = f"HTTP/1.1 {response.status_code} {response.reason_phrase}\r\n"
    return len(line) + _headers(response.headers) + len(response.read())


def _headers(headers: httpx.Headers) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers.raw) + 2


@dataclass
class Clock:
    now: int = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds


class Machine:
    """One installation of one person: a real store, a real engine, a breakable network."""

    def __init__(self, server: Server, caller: Caller, folder: Path, seed: int = 1) -> None:
        self.server, self.caller, self.folder, self.seed = server, caller, folder, seed
        self.clock = Clock()
        self.network = Network(httpx.WSGITransport(server.app))
        self.revoked: list[str] = []
        self.published: list[str] = []
        self.open()
        with self.store.write() as uow:
            me = Me.model_validate_json(caller.get("/me").data)
            uow.account.put(AccountRow(URL, me))

    def open(self) -> None:
        """Start, or start again after `kill`."""
        self.store = Store(self.folder / "interleaf.db", clock=self.clock)
        self.client = OrgClient(
            URL, self.caller.token, transport=self.network, burst=1, sleep=lambda _seconds: None
        )
        self.engine = SyncEngine(
            self.store,
            lambda: self.client,
            self.clock,
            Random(self.seed),
            self.published.append,
            self.revoked.append,
        )

    def kill(self) -> None:
        """Forget all that is only in memory, as a process that died."""
        self.store.close()
        self.client.close()

    def step(self, times: int = 1) -> RoundResult:
        for _ in range(times):
            result = self.engine.step()
        return result

    def settle(self, rounds: int = 40) -> None:
        """Step until nothing is on its way and nothing is behind; time goes on between rounds."""
        for _ in range(rounds):
            result = self.engine.step()
            if result.complete and not result.more and not self.waiting():
                return
            self.clock.advance(400_000)
        raise AssertionError(f"still waiting after {rounds} rounds: {self.waiting()}, {result}")

    def waiting(self) -> list[OutboxRow]:
        """What is on its way and waits for time alone."""
        with self.store.read() as uow:
            rows = uow.outbox.with_status(SyncStatus.QUEUED, SyncStatus.SYNCING, SyncStatus.RETRYING)
        return [row for row in rows if row.cause is None]

    # --- local writes, as the services make them ---

    def create(self, project_id: str, path: str, body: str, scope: Scope = Scope.PROJECT) -> LocalDraft:
        with self.store.read() as uow:
            project = uow.projects.get(project_id)
        draft = LocalDraft(
            draft_id=new_id("drf"),
            project_id=project_id,
            scope=scope,
            resource_id=new_id("mem"),
            base_commit=project.installed_commit if project and scope is Scope.PROJECT else None,
            base=ABSENT,
            created_at=self.clock(),
            updated_at=self.clock(),
        )
        self._add(draft, kind=OperationKind.CREATE, path=path, body=body)
        return draft

    def edit(self, project_id: str, resource_id: str, body: str) -> LocalDraft:
        """Begin a Draft on a published resource."""
        with self.store.read() as uow:
            project = uow.projects.get(project_id)
            published = uow.published.get(project_id, resource_id)
        assert project is not None
        assert published is not None
        org = published.org_source if published.scope is Scope.ORG else None
        draft = LocalDraft(
            draft_id=new_id("drf"),
            project_id=project_id,
            scope=published.scope,
            resource_id=resource_id,
            base_commit=org.commit_id if org else project.installed_commit,
            base=published.state(),
            created_at=self.clock(),
            updated_at=self.clock(),
        )
        self._add(draft, kind=OperationKind.UPDATE, body=body)
        return draft

    def adapt(self, project_id: str, resource_id: str, body: str) -> LocalDraft:
        """Begin an adaptation of an Org reference, at its path."""
        with self.store.read() as uow:
            project = uow.projects.get(project_id)
            source = uow.published.get(project_id, resource_id)
        assert project is not None
        assert source is not None
        draft = LocalDraft(
            draft_id=new_id("drf"),
            project_id=project_id,
            scope=Scope.PROJECT,
            resource_id=new_id("mem"),
            base_commit=project.installed_commit,
            base=ABSENT,
            created_at=self.clock(),
            updated_at=self.clock(),
            org_source=source.org_source,
        )
        self._add(draft, kind=OperationKind.CREATE, path=source.path, body=body)
        return draft

    def _add(self, draft: LocalDraft, **operation: Any) -> None:
        with self.store.write() as uow:
            uow.drafts.add(draft)
        self.append(draft.draft_id, **operation)

    def append(self, draft_id: str, **fields: Any) -> str:
        """Append one operation to a Draft and queue it; returns its id."""
        with self.store.write() as uow:
            draft = uow.drafts.get(draft_id)
            assert draft is not None
            operation = DraftOperation(operation_id=new_id("lop"), ordinal=draft.next_ordinal, **fields)
            uow.drafts.add_operation(draft_id, operation, self.clock())
            uow.outbox.add(
                OutboxRow(operation.operation_id, draft_id, draft.project_id, SyncStatus.QUEUED, self.clock())
            )
            uow.touch(draft.project_id, {draft.resource_id})
        return operation.operation_id

    # --- looks ---

    def draft(self, draft_id: str) -> LocalDraft:
        with self.store.read() as uow:
            found = uow.drafts.get(draft_id)
        assert found is not None
        return found

    def rows(self, draft_id: str) -> list[OutboxRow]:
        with self.store.read() as uow:
            return list(uow.outbox.of_draft(draft_id))

    def statuses(self, draft_id: str) -> list[str]:
        return [row.sync_status.value for row in self.rows(draft_id)]

    def bodies(self, project_id: str) -> dict[str, str]:
        """What the Project publishes on this machine, by path."""
        with self.store.read() as uow:
            return {each.path: each.body for each in uow.published.all(project_id)}

    def effective(self, project_id: str) -> dict[str, ResourceState]:
        """What a reader sees, computed from scratch."""
        with self.store.read() as uow:
            project = uow.projects.get(project_id)
            assert project is not None
            shown = {each.resource_id: each.state() for each in uow.published.all(project_id)}
            for draft in uow.drafts.overlaying(project_id):
                shown[draft.resource_id] = draft.state()
        return {name: state for name, state in shown.items() if state.exists}


def uploaded(server: Server, draft_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the ids of the operations that the server holds, by Draft, in order."""
    found: dict[str, list[str]] = {name: [] for name in draft_ids}
    with server.units.engine.connect() as connection:
        rows = connection.execute(
            text("SELECT draft_id, operation_id FROM draft_operation ORDER BY draft_id, ordinal")
        )
        for draft_id, operation_id in rows:
            if draft_id in found:
                found[draft_id].append(operation_id)
    return found


def merge(caller: Caller, project_id: str, draft_ids: list[str], scope: str = "project") -> str:
    """Open a Review of uploaded Drafts and merge it; returns its id."""
    review = caller.ok(
        "POST",
        "/reviews",
        json={"project_id": project_id, "scope": scope, "draft_ids": draft_ids, "title": "t"},
    )
    name: str = review["review"]["review_id"]
    detail = caller.ok("GET", f"/reviews/{name}")
    caller.ok(
        "POST",
        f"/reviews/{name}/merges",
        json={"version": detail["review"]["version"]},
        headers={"If-Match": f'"{detail["ref"]["commit_id"] or "none"}"'},
    )
    return name

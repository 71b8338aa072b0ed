"""A whole server in one process, on a real database, and people who call it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from flask import Flask
from sqlalchemy import Engine, text
from werkzeug.test import TestResponse

from org_server.config import Settings
from org_server.domain.states import HashedState
from org_server.domain.view_changes import ViewChange
from org_server.services.organization import found_organization
from org_server.services.publish import publish_commit
from org_server.services.tokens import issue
from org_server.services.users import add_user
from org_server.store.blobs import put_text
from org_server.store.tables import CommitRow, metadata
from org_server.store.unit_of_work import UnitOfWorkFactory
from org_server.wiring import build_app
from shared_schema import ids
from shared_schema.memory import OrgSource, Scope
from shared_schema.org_contract import API_PREFIX, Role, TokenCreate, UserCreate


@dataclass
class TestClock:
    """A clock that goes on by a millisecond a look, and by as much as a test says."""

    __test__ = False
    now: int = 1_800_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds


@dataclass(frozen=True)
class Caller:
    """Somebody with a token."""

    app: Flask
    user_id: str
    email: str
    token: str
    token_id: str

    def request(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **arguments: Any
    ) -> TestResponse:
        """Send one request below the API's prefix; ``json=`` and ``query_string=`` as Flask has them."""
        sent = {"Authorization": f"Bearer {self.token}"} | (headers or {})
        return self.app.test_client().open(API_PREFIX + path, method=method, headers=sent, **arguments)

    def get(self, path: str, **arguments: Any) -> TestResponse:
        return self.request("GET", path, **arguments)

    def post(self, path: str, json: Any, **arguments: Any) -> TestResponse:
        return self.request("POST", path, json=json, **arguments)

    def put(self, path: str, json: Any, if_match: object, **arguments: Any) -> TestResponse:
        return self.request("PUT", path, json=json, headers={"If-Match": str(if_match)}, **arguments)

    def patch(self, path: str, json: Any, if_match: object, **arguments: Any) -> TestResponse:
        return self.request("PATCH", path, json=json, headers={"If-Match": str(if_match)}, **arguments)

    def delete(self, path: str, if_match: object = "", **arguments: Any) -> TestResponse:
        headers = {"If-Match": str(if_match)} if if_match != "" else {}
        return self.request("DELETE", path, headers=headers, **arguments)

    def ok(self, method: str, path: str, **arguments: Any) -> Any:
        """Send a request that has to succeed and return its JSON."""
        answer = self.request(method, path, **arguments)
        assert answer.status_code < 300, answer.get_data(as_text=True)
        return answer.get_json() if answer.status_code != 204 else None


@dataclass
class Server:
    """The Organization server ``Acme`` with its owner ``ada``."""

    units: UnitOfWorkFactory
    clock: TestClock
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        founded = found_organization(self.units, "Acme", "ada@example.org")
        self.org_id = founded.org_id
        self.app = build_app(self.units, self.settings)
        with self.units.read() as uow:
            self.epoch = uow.org.epoch
        self.ada = Caller(self.app, founded.user_id, "ada@example.org", founded.token, "")

    def user(self, name: str, role: Role = Role.MEMBER) -> Caller:
        """Add a user with a token."""
        email = f"{name}@example.org"
        with self.units.write() as uow:
            row = add_user(uow, UserCreate(email=email, role=role), None)
        return self.token_for(email, row.id)

    def token_for(self, email: str, user_id: str, **limits: Any) -> Caller:
        """Issue a token for an existing user; ``limits`` are fields of ``TokenCreate``."""
        with self.units.write() as uow:
            issued = issue(uow, TokenCreate(user=user_id, **limits), None)
        return Caller(self.app, user_id, email, issued.token, issued.info.token_id)

    def project(self, owner: Caller, name: str = "Web", **members: Caller) -> str:
        """Create a Project; ``members`` are keyed by role (``member=``, ``admin=``, ``owner=``)."""
        project_id: str = owner.ok("POST", "/projects", json={"name": name})["project_id"]
        for role, member in members.items():
            owner.ok("POST", f"/projects/{project_id}/members", json={"email": member.email, "role": role})
        return project_id

    def publish(self, owner: str, *resources: Published) -> CommitRow:
        """Publish resources to an authority in one commit, without a Review."""
        with self.units.write() as uow:
            scope = Scope.ORG if owner == self.org_id else Scope.PROJECT
            changes = [
                ViewChange(each.resource_id, scope, each.state(put_text(uow, each.body)))
                for each in resources
            ]
            return publish_commit(uow, owner, changes, self.ada.user_id)

    def feed(self) -> list[tuple[str, str | None]]:
        """Return type and Project of every event so far."""
        with self.units.engine.connect() as connection:
            rows = connection.execute(text("SELECT type, project_id FROM feed_event ORDER BY seq"))
            return [(row[0], row[1]) for row in rows]

    def audit(self) -> list[str]:
        """Return the audited actions so far."""
        with self.units.engine.connect() as connection:
            return list(connection.execute(text("SELECT action FROM audit_event ORDER BY seq")).scalars())


@dataclass(frozen=True)
class Published:
    """One resource as a test publishes it."""

    path: str
    body: str = "# A title\n\nA text.\n"
    description: str = ""
    resource_id: str = field(default_factory=lambda: ids.new_id("mem"))
    org_source: OrgSource | None = None

    def state(self, content_hash: str) -> HashedState:
        return HashedState(True, self.path, self.description, content_hash, self.org_source)


def empty_tables(engine: Engine) -> None:
    """Bring a migrated PostgreSQL database back to where the migrations left it."""
    names = ", ".join(f'"{table.name}"' for table in metadata.sorted_tables)
    with engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY"))
        connection.execute(text("INSERT INTO feed_counter (id, seq) VALUES (1, 0)"))


def codes(answers: Iterable[TestResponse]) -> list[str]:
    """Return each answer's error code, or its status when it is none."""
    return [
        answer.get_json()["error"]["code"] if answer.status_code >= 400 else str(answer.status_code)
        for answer in answers
    ]

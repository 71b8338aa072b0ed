"""Clients that speak HTTP to a server in the same process, as a daemon and a reviewer would."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx
from werkzeug.datastructures import Headers

from org_server.domain.permissions import Actor
from org_server.http.auth import actor_of
from shared_schema import ids
from shared_schema.org_contract import API_PREFIX, EMPTY_REF
from tests.org_server.harness import Caller, Server


@dataclass
class DraftHandle:
    """A Draft as its author's machine knows it."""

    header: dict[str, Any]
    installation_id: str
    last_ordinal: int = 0

    @property
    def draft_id(self) -> str:
        return str(self.header["draft_id"])

    @property
    def resource_id(self) -> str:
        return str(self.header["resource_id"])

    def operation(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Return the next operation; it counts as made once it is returned."""
        self.last_ordinal += 1
        return {"operation_id": ids.new_id("lop"), "ordinal": self.last_ordinal, "kind": kind, **fields}

    def request(self, *operations: dict[str, Any]) -> dict[str, Any]:
        """Return the upload of these operations."""
        return {
            "installation_id": self.installation_id,
            "draft": self.header,
            "operations": list(operations),
        }


@dataclass
class Person:
    """Somebody with a token and a machine."""

    server: Server
    caller: Caller
    installation_id: str = field(default_factory=lambda: ids.new_id("ins"))

    def __post_init__(self) -> None:
        self.http = httpx.Client(
            transport=httpx.WSGITransport(app=self.server.app),
            base_url=f"http://server{API_PREFIX}",
            headers={"Authorization": f"Bearer {self.caller.token}"},
        )

    @property
    def user_id(self) -> str:
        return self.caller.user_id

    def actor(self) -> Actor:
        """Return who the services take this person for."""
        headers = Headers({"Authorization": f"Bearer {self.caller.token}"})
        return actor_of(headers, self.server.units)

    def get(self, path: str, **arguments: Any) -> Any:
        """GET that has to succeed; returns the JSON."""
        return succeeded(self.http.get(path, **arguments)).json()

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def ref(self, project_id: str) -> str | None:
        """Return the Project's newest commit."""
        commit_id: str | None = self.get(f"/projects/{project_id}")["ref"]["commit_id"]
        return commit_id

    def org_ref(self) -> str | None:
        """Return the Organization's newest commit."""
        commit_id: str | None = self.get("/sync")["org_ref"]["commit_id"]
        return commit_id

    def head(self, project_id: str, scope: str) -> str | None:
        return self.org_ref() if scope == "org" else self.ref(project_id)

    def new_draft(
        self,
        project_id: str,
        *,
        scope: str = "project",
        resource_id: str | None = None,
        org_source: dict[str, str] | None = None,
        base: str | None = "head",
    ) -> DraftHandle:
        """Return a Draft on the newest commit (or on ``base``) that nothing was uploaded of yet."""
        header: dict[str, Any] = {
            "draft_id": ids.new_id("drf"),
            "project_id": project_id,
            "scope": scope,
            "resource_id": resource_id or ids.new_id("mem"),
            "base_commit": self.head(project_id, scope) if base == "head" else base,
        }
        if org_source is not None:
            header["org_source"] = org_source
        return DraftHandle(header, self.installation_id)

    def upload(self, draft: DraftHandle, *operations: dict[str, Any]) -> httpx.Response:
        return self.post(f"/drafts/{draft.draft_id}/operations", draft.request(*operations))

    def append(self, draft: DraftHandle, kind: str, **fields: Any) -> DraftHandle:
        """Upload one more operation, which has to succeed."""
        succeeded(self.upload(draft, draft.operation(kind, **fields)))
        return draft

    def create(
        self, project_id: str, path: str, body: str = "text\n", *, description: str = "", **header: Any
    ) -> DraftHandle:
        """Upload a create Draft."""
        draft = self.new_draft(project_id, **header)
        return self.append(draft, "create", path=path, body=body, description=description)

    def edit(self, project_id: str, resource_id: str, body: str, **header: Any) -> DraftHandle:
        """Upload an update Draft of a published resource."""
        draft = self.new_draft(project_id, resource_id=resource_id, **header)
        return self.append(draft, "update", body=body)

    def remove(self, project_id: str, resource_id: str, **header: Any) -> DraftHandle:
        """Upload a delete Draft of a published resource."""
        return self.append(self.new_draft(project_id, resource_id=resource_id, **header), "delete")

    def submit(self, *drafts: DraftHandle, title: str = "Change", **fields: Any) -> dict[str, Any]:
        """Open a Review of these Drafts; ``fields`` are further ones of the request."""
        first = drafts[0].header
        body = {
            "project_id": first["project_id"],
            "scope": first["scope"],
            "draft_ids": [draft.draft_id for draft in drafts],
            "title": title,
            **fields,
        }
        found: dict[str, Any] = succeeded(self.post("/reviews", body)).json()
        return found

    def review(self, review_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/reviews/{review_id}")
        return found

    def draft(self, draft: DraftHandle) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/drafts/{draft.draft_id}")["draft"]
        return found

    def decide(self, review: dict[str, Any], decision: str, **fields: Any) -> httpx.Response:
        body = {"decision": decision, "version": review["review"]["version"], **fields}
        return self.post(f"/reviews/{review['review']['review_id']}/decisions", body)

    def merge(self, review: dict[str, Any], if_match: str | None = "shown") -> httpx.Response:
        """Merge on the version and the ref that ``review`` shows."""
        tag = review["ref"]["commit_id"] or EMPTY_REF if if_match == "shown" else if_match
        return self.http.post(
            f"/reviews/{review['review']['review_id']}/merges",
            json={"version": review["review"]["version"]},
            headers={} if tag is None else {"If-Match": f'"{tag}"'},
        )

    def publish(self, *drafts: DraftHandle) -> dict[str, Any]:
        """Submit these Drafts and merge them at once."""
        merged: dict[str, Any] = succeeded(self.merge(self.submit(*drafts))).json()
        return merged

    def view(self, project_id: str) -> dict[str, str]:
        """Return path → resource id of what the Project shows."""
        rows = self.get(f"/projects/{project_id}/memories", params={"limit": 200})["resources"]
        return {row["path"]: row["resource_id"] for row in rows}

    def select(self, project_id: str, *resource_ids: str) -> dict[str, Any]:
        """Replace the Project's selection."""
        revision = self.get(f"/projects/{project_id}/org-selections")["revision"]
        answer = self.http.put(
            f"/projects/{project_id}/org-selections",
            json={"resource_ids": list(resource_ids)},
            headers={"If-Match": f'"{revision}"'},
        )
        found: dict[str, Any] = succeeded(answer).json()
        return found

    def events(self, cursor: str) -> list[str]:
        """Return the types of what happened for this person since the cursor."""
        answer = succeeded(self.http.get("/sync", params={"cursor": cursor}))
        return [] if answer.status_code == 304 else [event["type"] for event in answer.json()["events"]]

    def cursor(self) -> str:
        return str(self.get("/sync")["cursor"])


class Team:
    """A Project ``Web``: ``ada`` owns the Organization and it, ``rob`` administers, ``mia`` writes."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.ada = Person(server, server.ada)
        self.rob = self.person("rob")
        self.mia = self.person("mia")
        self.project = server.project(server.ada, "Web", admin=self.rob.caller, member=self.mia.caller)

    def person(self, name: str) -> Person:
        """Return a new user of the Organization."""
        return Person(self.server, self.server.user(name))

    def policy(self, **fields: Any) -> None:
        """Change the Project's policy."""
        version = self.ada.get(f"/projects/{self.project}")["version"]
        path = f"/projects/{self.project}"
        succeeded(self.ada.http.patch(path, json=fields, headers={"If-Match": f'"{version}"'}))


def succeeded(answer: httpx.Response) -> httpx.Response:
    """Return the answer, which has to be a success or a 304."""
    assert answer.status_code < 400, answer.text
    return answer


def refused(answer: httpx.Response, code: str, status: int) -> dict[str, Any]:
    """Return the details of a refusal, which has to be this one."""
    assert answer.status_code == status, (answer.status_code, answer.text)
    error = answer.json()["error"]
    assert error["code"] == code, error
    assert error["message"]
    assert error["request_id"]
    details: dict[str, Any] = error["details"]
    return details

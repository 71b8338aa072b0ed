"""One machine without a server: a real store, real services, and ids and times that count up."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import text

from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from client.domain.local_draft import LocalDraft
from client.domain.projection import Installed, project
from client.services.edit_drafts import EditDrafts
from client.services.export_memory import ExportMemory
from client.services.import_drafts import ImportDrafts
from client.services.load_memory import LoadMemory
from client.services.project_memory import ProjectMemory
from client.services.read_drafts import ReadDrafts
from client.services.store_draft_operation import StoreDraftOperation
from client.store.outbox import OutboxRow
from client.store.projects import ProjectRow
from client.store.tables import metadata
from client.store.unit_of_work import Store
from shared_schema import tool_contract
from shared_schema.ids import Prefix
from shared_schema.memory import OrgSource, PublishedResource, Scope
from shared_schema.rules.hashing import content_hash
from shared_schema.tool_contract import StoreAnswer

PROJECT = "prj_1"
COMMIT = "c1"
ORG_COMMIT = "o1"


def published(
    resource_id: str,
    path: str,
    body: str = "# Text\n\nalpha beta gamma\n",
    *,
    scope: Scope = Scope.PROJECT,
    description: str = "",
    org_source: OrgSource | None = None,
) -> PublishedResource:
    """A published resource; an Org reference gets its own version as its source."""
    if scope is Scope.ORG and org_source is None:
        org_source = OrgSource(resource_id=resource_id, commit_id=ORG_COMMIT)
    return PublishedResource(
        resource_id=resource_id,
        scope=scope,
        path=path,
        description=description,
        body=body,
        content_hash=content_hash(body),
        org_source=org_source,
    )


OWN = published("mem_own", "own.md", "# Own\n\nalpha beta gamma\n", description="ours")
REFERENCE = published(
    "mem_ref", "ref.md", "# Reference\n\nalpha beta gamma\n", scope=Scope.ORG, description="org"
)


class LocalWorld:
    """A machine with one Project of an own resource and an Org reference."""

    def __init__(self, home: Path, resources: Iterable[PublishedResource] = (OWN, REFERENCE)) -> None:
        self.now = 1_000
        self._ids = itertools.count(1)
        self.woken: list[str] = []
        self.store = Store(home / "interleaf.db", clock=self.clock)
        self.memory = ProjectMemory(self.store)
        common = (self.store, self.memory, self.clock, self.new_id, self.woken.append)
        self.save = StoreDraftOperation(*common)
        self.edit = EditDrafts(*common)
        self.imports = ImportDrafts(*common)
        self.exports = ExportMemory(self.store, self.memory)
        self.load = LoadMemory(self.store, self.memory)
        self.drafts = ReadDrafts(self.store, self.memory)
        self.publish(resources, commit=COMMIT, seq=1)

    def clock(self) -> int:
        self.now += 1
        return self.now

    def new_id(self, prefix: Prefix) -> str:
        return f"{prefix}_{next(self._ids):06}"

    def publish(
        self, resources: Iterable[PublishedResource], *, commit: str, seq: int, project_id: str = PROJECT
    ) -> None:
        """Install a complete published state."""
        with self.store.write() as uow:
            uow.projects.put(
                ProjectRow(project_id, "Alpha", installed_commit=commit, installed_seq=seq, snapshot_at=1)
            )
            uow.published.replace_all(project_id, resources)
            uow.touch(project_id)

    # --- the five operations of the tool ------------------------------------------------

    def create(self, path: str, body: str = "# New\n\ntext\n", **more: str) -> StoreAnswer:
        return self._save(create=tool_contract.Create(path=path, body=body, **more))

    def update(self, resource_id: str, old: str, new: str, **more: str) -> StoreAnswer:
        if "expected_hash" not in more:
            more["expected_hash"] = self.item(resource_id).content_hash
        edit = tool_contract.Replacement(old_text=old, new_text=new)
        return self._save(update=tool_contract.Update(id=resource_id, replacements=[edit], **more))

    def rename(self, resource_id: str, path: str, **more: str) -> StoreAnswer:
        return self._save(rename=tool_contract.Rename(id=resource_id, new_path=path, **more))

    def delete(self, resource_id: str) -> StoreAnswer:
        return self._save(delete=tool_contract.Delete(id=resource_id))

    def discard(self, asked: str) -> StoreAnswer:
        return self._save(discard=tool_contract.Discard(id=asked))

    def _save(self, **operation: object) -> StoreAnswer:
        return self.save(PROJECT, tool_contract.Store.model_validate(operation))

    # --- looking ------------------------------------------------------------------------

    def shown(self) -> EffectiveMemory:
        return self.memory.get(PROJECT)

    def item(self, resource_id: str) -> EffectiveResource:
        return self.shown().by_id[resource_id]

    def draft(self, draft_id: str) -> LocalDraft:
        with self.store.read() as uow:
            found = uow.drafts.get(draft_id)
        assert found is not None
        return found

    def outbox(self) -> list[OutboxRow]:
        with self.store.read() as uow:
            return [entry.row for entry in uow.outbox.entries(all_rows=True)]

    def set_draft(self, draft: LocalDraft) -> None:
        """Store a Draft's header as synchronisation would."""
        with self.store.write() as uow:
            uow.drafts.put(draft)
            uow.touch(draft.project_id, {draft.resource_id})

    def send(self, count: int = 1) -> None:
        """Claim the first due operations and have them accepted."""
        with self.store.write() as uow:
            ids = [row.operation_id for row in uow.outbox.due(self.now)[:count]]
            uow.outbox.claim(ids, "lease", self.now)
            uow.connection.execute(
                text("UPDATE outbox SET sync_status='synced', lease=NULL WHERE lease='lease'")
            )

    def projected_anew(self) -> EffectiveMemory:
        """Effective Memory computed from everything, without any cache."""
        with self.store.read() as uow:
            row = uow.projects.get(PROJECT)
            assert row is not None
            installed = Installed(PROJECT, row.installed_commit, row.installed_seq)
            return project(installed, uow.published.all(PROJECT), uow.drafts.overlaying(PROJECT))

    def dump(self) -> dict[str, list[tuple[object, ...]]]:
        """Every row of every table."""
        with self.store.read() as uow:
            return {
                table.name: [tuple(row) for row in uow.connection.execute(table.select())]
                for table in metadata.sorted_tables
            }

    def close(self) -> None:
        self.store.close()

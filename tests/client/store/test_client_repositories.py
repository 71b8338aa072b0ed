from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from client.domain.local_draft import LocalDraft
from client.store.account import AccountRow, SyncStateRow
from client.store.activations import KEPT_RUNS, ActivationStateRow, RunRow
from client.store.outbox import OutboxRow
from client.store.projects import BindingRow, ProjectRow
from client.store.unit_of_work import Store
from shared_schema.drafts import DraftOperation, DraftStatus, OperationKind, Reconciliation
from shared_schema.memory import ABSENT, OrgSource, ResourceState, Scope
from shared_schema.org_contract import Me, Role
from shared_schema.sync_status import ParkingCause, SyncStatus
from tests.client.local_world import OWN, REFERENCE, published

P = "prj_1"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "interleaf.db")
    with made.write() as uow:
        uow.projects.put(ProjectRow(P, "Alpha"))
        uow.projects.put(ProjectRow("prj_2", "Beta"))
    yield made
    made.close()


def draft(draft_id: str, resource_id: str = "mem_a", project_id: str = P) -> LocalDraft:
    return LocalDraft(
        draft_id=draft_id,
        project_id=project_id,
        scope=Scope.PROJECT,
        resource_id=resource_id,
        base_commit=None,
        base=ABSENT,
        created_at=1,
        updated_at=1,
    )


def add(store: Store, made: LocalDraft, *operation_ids: str, status: SyncStatus = SyncStatus.QUEUED) -> None:
    with store.write() as uow:
        uow.drafts.add(made)
        for ordinal, operation_id in enumerate(operation_ids, start=1):
            kind = OperationKind.CREATE if ordinal == 1 else OperationKind.UPDATE
            path = "a.md" if ordinal == 1 else None
            operation = DraftOperation(
                operation_id=operation_id, ordinal=ordinal, kind=kind, path=path, body=f"# {ordinal}"
            )
            uow.drafts.add_operation(made.draft_id, operation, 1)
            uow.outbox.add(OutboxRow(operation_id, made.draft_id, made.project_id, status, 1))


# --- Drafts ---------------------------------------------------------------------------------


def test_a_draft_comes_back_as_it_was_stored(store: Store) -> None:
    made = replace(
        draft("drf_1"),
        scope=Scope.ORG,
        overlay=False,
        status=DraftStatus.MERGED,
        base_commit="c1",
        base=ResourceState(exists=True, path="ü.md", body="\ufeff# Ü\r\n", description="d"),
        org_source=OrgSource(resource_id="mem_s", commit_id="o1"),
        review_id="rev_1",
        merged_commit="c2",
        merged_seq=2,
        reconciliation=Reconciliation.CONFLICTS,
        conflicts=("content", "path"),
        updated_at=9,
    )
    add(store, made, "lop_1", "lop_2")

    with store.read() as uow:
        found = uow.drafts.get("drf_1")

    assert found is not None
    assert [operation.operation_id for operation in found.operations] == ["lop_1", "lop_2"]
    assert replace(found, operations=(), seq=0) == made


@pytest.mark.requirement("store.one_draft")
def test_the_database_itself_refuses_a_second_active_draft_on_a_resource(store: Store) -> None:
    add(store, draft("drf_1"))
    with pytest.raises(sqlite3.IntegrityError):
        add(store, draft("drf_2"))
    add(store, draft("drf_3", project_id="prj_2"))
    with store.write() as uow:
        uow.drafts.put(replace(draft("drf_1"), status=DraftStatus.DISCARDED))
    add(store, draft("drf_2"))


def test_drafts_are_read_in_the_order_in_which_they_were_made(store: Store) -> None:
    for number in (3, 1, 2):
        add(store, draft(f"drf_{number}", f"mem_{number}"))
    with store.read() as uow:
        assert [found.draft_id for found in uow.drafts.list(P)] == ["drf_3", "drf_1", "drf_2"]
        assert [found.draft_id for found in uow.drafts.overlaying(P)] == ["drf_3", "drf_1", "drf_2"]
        assert [found.draft_id for found in uow.drafts.overlaying(P, {"mem_2"})] == ["drf_2"]


def test_a_cancelled_operation_leaves_its_place_but_stays_in_the_log(store: Store) -> None:
    add(store, draft("drf_1"), "lop_1", "lop_2")
    with store.write() as uow:
        uow.drafts.cancel_operations(["lop_2"])
        uow.drafts.add_operation(
            "drf_1", DraftOperation(operation_id="lop_3", ordinal=2, kind=OperationKind.DISCARD), 2
        )
    with store.read() as uow:
        found, cancelled = uow.drafts.get("drf_1"), uow.drafts.operation("lop_2")
    assert found is not None
    assert [item.operation_id for item in found.operations] == ["lop_1", "lop_3"]
    assert cancelled is not None
    assert cancelled.ordinal < 0


# --- outbox ---------------------------------------------------------------------------------


def ids(rows: tuple[OutboxRow, ...]) -> list[str]:
    return [row.operation_id for row in rows]


def change(store: Store, operation_id: str, **fields: object) -> None:
    with store.write() as uow:
        row = uow.outbox.get(operation_id)
        assert row is not None
        uow.outbox.put(replace(row, **fields))  # type: ignore[arg-type]  # named by the tests below


@pytest.mark.requirement("sync.order")
@pytest.mark.parametrize(
    ("first", "due"),
    [
        ({"sync_status": SyncStatus.QUEUED}, ["lop_1", "lop_2", "lop_3"]),
        ({"sync_status": SyncStatus.SYNCED}, ["lop_2", "lop_3"]),
        ({"sync_status": SyncStatus.SYNCING}, ["lop_3"]),
        ({"sync_status": SyncStatus.FAILED}, ["lop_3"]),
        ({"sync_status": SyncStatus.RETRYING, "next_attempt_at": 11}, ["lop_3"]),
        ({"sync_status": SyncStatus.RETRYING, "next_attempt_at": 10}, ["lop_1", "lop_2", "lop_3"]),
        ({"sync_status": SyncStatus.RETRYING, "cause": ParkingCause.SIGNED_OUT}, ["lop_3"]),
    ],
)
def test_nothing_is_due_before_what_stands_before_it_in_its_draft(
    store: Store, first: dict[str, object], due: list[str]
) -> None:
    add(store, draft("drf_1"), "lop_1", "lop_2")
    add(store, draft("drf_2", "mem_b"), "lop_3")
    change(store, "lop_1", **first)
    with store.read() as uow:
        assert ids(uow.outbox.due(10)) == due


@pytest.mark.requirement("sync.lease")
def test_a_row_is_claimed_once_and_a_late_answer_of_an_old_lease_is_ignored(store: Store) -> None:
    add(store, draft("drf_1"), "lop_1")
    with store.write() as uow:
        [claimed] = uow.outbox.claim(["lop_1"], "one", 10)
        assert uow.outbox.claim(["lop_1"], "two", 10) == ()
    assert (claimed.sync_status, claimed.attempts, claimed.sent, claimed.lease_at) == (
        SyncStatus.SYNCING,
        1,
        True,
        10,
    )
    done = replace(claimed, sync_status=SyncStatus.SYNCED, lease=None)
    with store.write() as uow:
        assert uow.outbox.put_leased(done, "older") is False
        assert uow.outbox.put_leased(done, "one") is True
        assert uow.outbox.put_leased(done, "one") is False


def test_the_outbox_counts_lists_and_names_the_next_time(store: Store) -> None:
    add(store, draft("drf_1"), "lop_1", "lop_2")
    add(store, draft("drf_2", "mem_b", "prj_2"), "lop_3")
    change(store, "lop_1", sync_status=SyncStatus.SYNCED)
    change(store, "lop_2", sync_status=SyncStatus.RETRYING, next_attempt_at=50)
    change(
        store, "lop_3", sync_status=SyncStatus.RETRYING, next_attempt_at=40, cause=ParkingCause.ACCESS_LOST
    )
    with store.read() as uow:
        assert uow.outbox.counts(P)[SyncStatus.SYNCED] == 1
        assert sum(uow.outbox.counts().values()) == 3
        assert [(entry.row.operation_id, entry.ordinal, entry.kind) for entry in uow.outbox.entries()] == [
            ("lop_2", 2, "update"),
            ("lop_3", 1, "create"),
        ]
        assert len(uow.outbox.entries(all_rows=True)) == 3
        assert uow.outbox.next_due_at() == 50
        assert ids(uow.outbox.with_status(SyncStatus.RETRYING, project_id="prj_2")) == ["lop_3"]
        assert uow.outbox.statuses_by_draft(P) == {"drf_1": {SyncStatus.SYNCED, SyncStatus.RETRYING}}


# --- published ------------------------------------------------------------------------------


def test_published_resources_come_back_as_they_were_stored(store: Store) -> None:
    with store.write() as uow:
        uow.published.replace_all(P, [REFERENCE, OWN])
    with store.read() as uow:
        assert uow.published.all(P) == [OWN, REFERENCE]
        assert uow.published.get(P, "mem_ref") == REFERENCE
        assert uow.published.get("prj_2", "mem_ref") is None
        assert uow.published.some(P, ["mem_own", "mem_none"]) == [OWN]
        assert uow.published.count(P) == 2


@pytest.mark.requirement("sync.revocation")
def test_a_text_goes_with_the_last_project_that_shows_it(store: Store) -> None:
    with store.write() as uow:
        uow.published.put_many(P, [OWN, REFERENCE])
        uow.published.put_many("prj_2", [OWN])
        uow.published.delete_project(P)
        assert uow.published.drop_unused_texts() == 1
        assert uow.published.all("prj_2") == [OWN]
        uow.published.remove("prj_2", ["mem_own", "mem_none"])
        assert uow.published.drop_unused_texts() == 1


def test_a_resource_that_stands_twice_in_what_is_applied_keeps_its_later_form(store: Store) -> None:
    later = published("mem_own", "later.md", "# Later\n")
    with store.write() as uow:
        uow.published.put_many(P, [OWN, later])
        assert uow.published.all(P) == [later]
        uow.published.put_many(P, [OWN])
        assert uow.published.all(P) == [OWN]


def test_thousands_of_resources_fit_into_one_application(store: Store) -> None:
    many = [published(f"mem_{number:05}", f"{number}.md", f"# {number}\n") for number in range(1_203)]
    with store.write() as uow:
        uow.published.put_many(P, many)
        assert uow.published.all(P) == many
        assert uow.published.some(P, [item.resource_id for item in many]) == many
        uow.published.remove(P, [item.resource_id for item in many])
        assert uow.published.count(P) == 0


# --- the rest -------------------------------------------------------------------------------


def test_the_account_and_the_state_of_sync_are_one_row_each(store: Store) -> None:
    me = Me(
        user_id="usr_1",
        email="a@b.c",
        name="Ada",
        org_id="org_1",
        org_name="Org",
        org_role=Role.OWNER,
        read_only=False,
        expires_at=None,
        capabilities=["project.create"],
        projects=[],
    )
    with store.write() as uow:
        assert (uow.account.get(), uow.sync_state.get()) == (None, SyncStateRow())
        uow.account.put(AccountRow("https://one", me))
        uow.account.put(AccountRow("https://two", me))
        uow.account.set_signed_out(True)
        assert uow.account.get() == AccountRow("https://two", me, signed_out=True)
        uow.account.clear()
        assert uow.account.get() is None
        uow.sync_state.put(SyncStateRow("e", "c", 1, None))
        uow.sync_state.put(SyncStateRow("e", "d", 2, "x"))
        assert uow.sync_state.get() == SyncStateRow("e", "d", 2, "x")


def test_the_nearest_bound_directory_is_the_longest(store: Store) -> None:
    with store.write() as uow:
        uow.bindings.put(BindingRow("/a", P, 1))
        uow.bindings.put(BindingRow("/a/b", "prj_2", 1))
        assert uow.bindings.nearest(["/a/b/c", "/a/b", "/a", "/"]) == BindingRow("/a/b", "prj_2", 1)
        assert uow.bindings.nearest(["/x", "/"]) is None
        assert uow.bindings.get("/a") == BindingRow("/a", P, 1)


def run(number: int, *, pinned: bool = False, project_id: str = P) -> RunRow:
    return RunRow(f"run_{number:04}", project_id, number, "q", "rev", 1, 1.0, pinned, {"n": number})


@pytest.mark.requirement("runs.bounded")
def test_old_runs_are_dropped_but_pinned_ones_and_other_projects_kept(store: Store) -> None:
    with store.write() as uow:
        uow.runs.add(run(0, pinned=True))
        uow.runs.add(run(1, project_id="prj_2"))
        for number in range(2, KEPT_RUNS + 4):
            uow.runs.add(run(number))
        kept = uow.runs.list(P, 10_000)
        assert len(kept) == KEPT_RUNS + 1
        assert {kept[-1].run_id, kept[-2].run_id} == {"run_0000", "run_0004"}
        assert len(uow.runs.list("prj_2", 10)) == 1
        assert uow.runs.set_pinned("run_0004", True) is True
        assert uow.runs.set_pinned("run_none", True) is False
        assert uow.runs.delete_project(P) == KEPT_RUNS + 1


def test_the_units_of_an_agents_context_come_back_and_expire(store: Store) -> None:
    state = ActivationStateRow("st_1", P, {"mem_a#1": ("sha256:x", "mem_a")}, 1, 1)
    with store.write() as uow:
        uow.activation_states.put(state)
        assert uow.activation_states.get("st_1") == state
        uow.activation_states.touch("st_1", 10)
        uow.activation_states.put(replace(state, state_id="st_2", last_used_at=5))
        assert uow.activation_states.delete_expired(10) == 1
        assert uow.activation_states.get("st_1") == replace(state, last_used_at=10)
        assert uow.activation_states.count() == 1
        assert uow.activation_states.delete_project(P) == 1
        assert uow.activation_states.get("st_1") is None

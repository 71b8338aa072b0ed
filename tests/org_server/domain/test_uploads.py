"""Which operations of an upload are new, and whether they fit the state that they meet."""

import pytest

from org_server.domain.states import GONE, HashedState
from org_server.domain.uploads import checked_operation, new_operations, operation_fingerprint
from shared_schema.drafts import DraftOperation, OperationKind
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import ResourceState

PRESENT = HashedState.of(ResourceState(exists=True, path="a.md", body="text\n"))


def operation(ordinal: int, body: str = "text\n", name: str | None = None) -> DraftOperation:
    return DraftOperation(
        operation_id=name or f"lop_{ordinal}", ordinal=ordinal, kind=OperationKind.UPDATE, body=body
    )


def known(*operations: DraftOperation) -> dict[str, str]:
    return {each.operation_id: operation_fingerprint("drf_1", each) for each in operations}


ONE, TWO, THREE = operation(1), operation(2), operation(3)


@pytest.mark.requirement("upload.order")
@pytest.mark.parametrize(
    ("last", "sent", "accepted", "fresh"),
    [
        (0, [ONE, TWO], [], [ONE, TWO]),
        (1, [ONE, TWO], [ONE], [TWO]),
        (1, [TWO, THREE], [ONE], [TWO, THREE]),
        (3, [ONE, TWO, THREE], [ONE, TWO, THREE], []),
        (3, [TWO], [ONE, TWO, THREE], []),
        (0, [ONE, ONE, TWO], [], [ONE, TWO]),
    ],
)
def test_what_was_accepted_before_is_left_out_and_the_rest_follows_in_order(
    last: int, sent: list[DraftOperation], accepted: list[DraftOperation], fresh: list[DraftOperation]
) -> None:
    assert new_operations("drf_1", last, sent, known(*accepted)) == fresh


@pytest.mark.requirement("upload.order")
@pytest.mark.parametrize(
    ("last", "sent", "accepted", "expected"),
    [
        (0, [TWO], [], 1),
        (0, [ONE, THREE], [], 2),
        (1, [THREE], [ONE], 2),
        (1, [TWO, operation(2, name="lop_other")], [ONE], 3),
        (2, [operation(2, name="lop_other")], [ONE, TWO], 3),
    ],
)
def test_a_hole_or_a_taken_place_names_the_ordinal_that_is_due(
    last: int, sent: list[DraftOperation], accepted: list[DraftOperation], expected: int
) -> None:
    with pytest.raises(InterleafError) as raised:
        new_operations("drf_1", last, sent, known(*accepted))
    assert raised.value.code is ErrorCode.OPERATION_OUT_OF_ORDER
    assert raised.value.details["expected_ordinal"] == expected


@pytest.mark.requirement("upload.mismatch")
@pytest.mark.parametrize(
    ("draft_id", "sent", "accepted"),
    [
        ("drf_1", [operation(1, "other\n")], [ONE]),
        ("drf_1", [ONE, operation(1, "other\n")], []),
        ("drf_2", [ONE], [ONE]),
        ("drf_1", [operation(2, name="lop_1")], [ONE]),
    ],
)
def test_an_id_that_stands_for_something_else_is_a_mismatch(
    draft_id: str, sent: list[DraftOperation], accepted: list[DraftOperation]
) -> None:
    with pytest.raises(InterleafError) as raised:
        new_operations(draft_id, len(accepted), sent, known(*accepted))
    assert raised.value.code is ErrorCode.IDEMPOTENCY_MISMATCH


@pytest.mark.parametrize(
    ("fields", "present", "allowed"),
    [
        ({"kind": "update", "body": "x\n"}, PRESENT, True),
        ({"kind": "update", "body": "x\n"}, GONE, False),
        ({"kind": "rename", "path": "b.md"}, PRESENT, True),
        ({"kind": "rename", "path": "b.md"}, GONE, False),
        ({"kind": "delete"}, PRESENT, True),
        ({"kind": "delete"}, GONE, False),
        ({"kind": "discard"}, GONE, True),
        ({"kind": "create", "path": "b.md", "body": "x\n"}, GONE, True),
        ({"kind": "create", "path": "b.md", "body": "\n"}, GONE, False),
        ({"kind": "rebase", "base_commit": "", "state": {"exists": False}}, PRESENT, True),
        ({"kind": "rebase", "base_commit": "", "state": {"exists": True, "path": "b.md"}}, PRESENT, False),
    ],
)
def test_an_operation_has_to_fit_the_state_that_it_meets(
    fields: dict[str, object], present: HashedState, allowed: bool
) -> None:
    sent = DraftOperation.model_validate({"operation_id": "lop_1", "ordinal": 1} | fields)
    if allowed:
        assert checked_operation(sent, present) == sent
        return
    with pytest.raises(InterleafError) as raised:
        checked_operation(sent, present)
    assert raised.value.code is ErrorCode.INVALID_ARGUMENTS


def test_paths_are_kept_in_their_composed_form() -> None:
    sent = DraftOperation(operation_id="lop_1", ordinal=1, kind=OperationKind.RENAME, path="u\u0308ber.md")
    assert checked_operation(sent, PRESENT).path == "\u00fcber.md"

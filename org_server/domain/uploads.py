"""Uploads of a Draft's operations: which of them are new, and whether each fits the state it meets."""

from collections.abc import Mapping, Sequence
from typing import Any, Never

from org_server.domain.states import HashedState
from shared_schema.drafts import DraftOperation, OperationKind
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.rules.hashing import fingerprint
from shared_schema.rules.paths import normalise_path
from shared_schema.rules.text import check_body, check_description


def operation_fingerprint(draft_id: str, operation: DraftOperation) -> str:
    """Return the hash of all that an operation id stands for: equal only for a repetition."""
    return fingerprint({"draft_id": draft_id, "operation": operation.model_dump(mode="json")})


def new_operations(
    draft_id: str, last_ordinal: int, operations: Sequence[DraftOperation], known: Mapping[str, str]
) -> list[DraftOperation]:
    """Return the operations that were not accepted before, in order.

    ``known`` maps the ids of accepted operations to their fingerprints. Raises
    ``idempotency_mismatch`` (details: ``operation_id``) where an id came with another content, and
    ``operation_out_of_order`` (details: ``expected_ordinal``, ``operation_id``) for a hole and for
    a place that another operation has.
    """
    seen = dict(known)
    fresh: list[DraftOperation] = []
    for operation in operations:
        own = operation_fingerprint(draft_id, operation)
        before = seen.setdefault(operation.operation_id, own)
        if before != own:
            raise InterleafError(
                ErrorCode.IDEMPOTENCY_MISMATCH,
                "This operation id was accepted with another content. Allocate a new id.",
                details={"operation_id": operation.operation_id},
            )
        if operation.operation_id in known or operation in fresh:
            continue
        expected = last_ordinal + len(fresh) + 1
        if operation.ordinal != expected:
            raise InterleafError(
                ErrorCode.OPERATION_OUT_OF_ORDER,
                f"Operation {expected} of this Draft is due. Send the operations from it on.",
                details={"expected_ordinal": expected, "operation_id": operation.operation_id},
            )
        fresh.append(operation)
    return fresh


def checked_operation(operation: DraftOperation, present: HashedState) -> DraftOperation:
    """Return the operation with its path in the stored form, fit for the state that it meets.

    Raises ``invalid_path``, or ``invalid_arguments`` with ``details.operation_id``.
    """
    if (
        operation.kind in {OperationKind.UPDATE, OperationKind.RENAME, OperationKind.DELETE}
        and not present.exists
    ):
        _refuse(operation, "kind", f"there is nothing to {operation.kind}; begin the Draft with a create")
    if operation.body is not None:
        check_body(operation.body)
    if operation.description is not None:
        check_description(operation.description)
    changed: dict[str, Any] = {}
    if operation.path is not None:
        changed["path"] = normalise_path(operation.path)
    if operation.state is not None and operation.state.exists:
        check_body(operation.state.body)
        check_description(operation.state.description)
        changed["state"] = operation.state.model_copy(update={"path": normalise_path(operation.state.path)})
    return operation.model_copy(update=changed) if changed else operation


def _refuse(operation: DraftOperation, field: str, problem: str) -> Never:
    raise InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"Operation {operation.ordinal} cannot be applied: {problem}.",
        details={
            "operation_id": operation.operation_id,
            "fields": [{"field": field, "problem": problem}],
        },
    )

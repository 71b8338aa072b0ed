"""One error type, one list of codes, used by daemon, proxy, command line and server.

Every code belongs to one kind, and the kind answers the caller's question "may I try again?"::

    InterleafError
    ├── INVALID       the request is wrong; the same request never succeeds
    ├── NOT_FOUND     no such thing, or none that this caller may see
    ├── DENIED        seen, but not allowed; somebody with the right must act
    ├── CONFLICT      the world moved; read again, decide again, ask again
    ├── NOT_READY     being prepared in the background; ask again later
    ├── UNAVAILABLE   a part is down or unreachable; the same request may succeed later
    └── INTERNAL      our fault; the log holds the id that the message names

Retry decision: ``UNAVAILABLE`` and ``NOT_READY`` may be retried unchanged, all others may not.
A code is never renamed or given another meaning. Messages say what to do next and hold no body,
token or stack trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple


class Kind(StrEnum):
    """What a caller can do about an error."""

    INVALID = "invalid"
    NOT_FOUND = "not_found"
    DENIED = "denied"
    CONFLICT = "conflict"
    NOT_READY = "not_ready"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"


class ErrorCode(StrEnum):
    """Every stable error code. The value is the wire form."""

    # The memory tool.
    INVALID_ARGUMENTS = "invalid_arguments"
    INVALID_PATH = "invalid_path"
    INVALID_ACTIVATION_STATE = "invalid_activation_state"
    MEMORY_RESOURCE_NOT_FOUND = "memory_resource_not_found"
    MEMORY_CONTENT_CHANGED = "memory_content_changed"
    TEXT_REPLACEMENT_NOT_FOUND = "text_replacement_not_found"
    TEXT_REPLACEMENT_AMBIGUOUS = "text_replacement_ambiguous"
    TEXT_REPLACEMENT_OVERLAP = "text_replacement_overlap"
    TEXT_REPLACEMENT_NO_CHANGE = "text_replacement_no_change"
    PATH_OCCUPIED = "path_occupied"
    ORG_REFERENCE_NOT_DELETABLE = "org_reference_not_deletable"
    DRAFT_NOT_FOUND = "draft_not_found"
    DRAFT_NOT_OPEN = "draft_not_open"
    DRAFT_EMPTY = "draft_empty"

    # The daemon.
    AGENT_RUNTIME_MISMATCH = "agent_runtime_mismatch"
    DAEMON_UNAVAILABLE = "daemon_unavailable"
    DAEMON_ALREADY_RUNNING = "daemon_already_running"
    DAEMON_TOO_OLD = "daemon_too_old"
    DATABASE_CORRUPT = "database_corrupt"
    PROJECT_BINDING_NOT_FOUND = "project_binding_not_found"
    PROJECT_BINDING_CHANGED = "project_binding_changed"
    PROJECT_ACCESS_LOST = "project_access_lost"
    PROJECT_NOT_SYNCED = "project_not_synced"
    SEARCH_MODEL_PREPARING = "search_model_preparing"
    SEARCH_MODEL_UNAVAILABLE = "search_model_unavailable"
    SEARCH_INDEX_PREPARING = "search_index_preparing"
    ACTIVATION_DEADLINE = "activation_deadline"
    STORAGE_FULL = "storage_full"
    SIGNED_OUT = "signed_out"
    ACCOUNT_IN_USE = "account_in_use"
    ORG_SERVER_UNAVAILABLE = "org_server_unavailable"
    CLIENT_TOO_OLD = "client_too_old"
    OUTBOX_OPERATION_NOT_FOUND = "outbox_operation_not_found"
    RUN_NOT_FOUND = "run_not_found"
    RUN_OUTDATED = "run_outdated"
    SYNC_INCOMPLETE = "sync_incomplete"
    CHAIN_BROKEN = "chain_broken"

    # The Organization server.
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    RATE_LIMITED = "rate_limited"
    PRECONDITION_REQUIRED = "precondition_required"
    PRECONDITION_FAILED = "precondition_failed"
    VERSION_CONFLICT = "version_conflict"
    ALREADY_EXISTS = "already_exists"
    LAST_OWNER = "last_owner"
    OPERATION_OUT_OF_ORDER = "operation_out_of_order"
    IDEMPOTENCY_MISMATCH = "idempotency_mismatch"
    COMMIT_UNKNOWN = "commit_unknown"
    RESYNC_REQUIRED = "resync_required"
    REVIEW_ALREADY_APPROVED = "review_already_approved"
    REVIEW_CLOSED = "review_closed"
    REVIEW_NOT_APPROVED = "review_not_approved"
    SELF_APPROVAL_NOT_ALLOWED = "self_approval_not_allowed"
    RECONCILIATION_REQUIRED = "reconciliation_required"
    ADAPTATION_EXISTS = "adaptation_exists"
    CONFLICT_MARKERS = "conflict_markers"
    SCHEMA_MISMATCH = "schema_mismatch"
    DATABASE_UNAVAILABLE = "database_unavailable"

    INTERNAL_ERROR = "internal_error"


class ErrorSpec(NamedTuple):
    """What is fixed about a code: its kind, HTTP status and the next step for a person."""

    kind: Kind
    status: int
    remedy: str


_C = ErrorCode

ERRORS: Final[Mapping[ErrorCode, ErrorSpec]] = {
    _C.INVALID_ARGUMENTS: ErrorSpec(Kind.INVALID, 400, "Correct the fields that the details name."),
    _C.INVALID_PATH: ErrorSpec(
        Kind.INVALID, 400, "Use a relative path such as guides/release.md; the details name the rule."
    ),
    _C.INVALID_ACTIVATION_STATE: ErrorSpec(
        Kind.INVALID, 400, "Activate again without state; treat earlier fragments as gone."
    ),
    _C.MEMORY_RESOURCE_NOT_FOUND: ErrorSpec(
        Kind.NOT_FOUND, 404, "Check the exact id or path, or activate to find it."
    ),
    _C.MEMORY_CONTENT_CHANGED: ErrorSpec(
        Kind.CONFLICT, 409, "Load the resource again and reconsider the edit."
    ),
    _C.TEXT_REPLACEMENT_NOT_FOUND: ErrorSpec(
        Kind.CONFLICT, 409, "Copy old_text exactly from the loaded content."
    ),
    _C.TEXT_REPLACEMENT_AMBIGUOUS: ErrorSpec(
        Kind.CONFLICT, 409, "Lengthen old_text until it occurs exactly once."
    ),
    _C.TEXT_REPLACEMENT_OVERLAP: ErrorSpec(Kind.INVALID, 400, "Join the overlapping replacements into one."),
    _C.TEXT_REPLACEMENT_NO_CHANGE: ErrorSpec(Kind.INVALID, 400, "Leave out an edit that changes nothing."),
    _C.PATH_OCCUPIED: ErrorSpec(Kind.CONFLICT, 409, "Choose another path, or edit the resource that has it."),
    _C.ORG_REFERENCE_NOT_DELETABLE: ErrorSpec(
        Kind.DENIED, 403, "Remove the selection instead, or propose the deletion to the Organization."
    ),
    _C.DRAFT_NOT_FOUND: ErrorSpec(Kind.NOT_FOUND, 404, "List the Drafts with: interleaf draft list"),
    _C.DRAFT_NOT_OPEN: ErrorSpec(Kind.CONFLICT, 409, "Make a new Draft; this one is merged or discarded."),
    _C.DRAFT_EMPTY: ErrorSpec(Kind.CONFLICT, 409, "The Draft changes nothing any more; discard it."),
    _C.AGENT_RUNTIME_MISMATCH: ErrorSpec(
        Kind.UNAVAILABLE, 409, "Run: interleaf daemon restart. Then reconnect the agent's integration."
    ),
    _C.DAEMON_UNAVAILABLE: ErrorSpec(Kind.UNAVAILABLE, 503, "Start it with: interleaf daemon start"),
    _C.DAEMON_ALREADY_RUNNING: ErrorSpec(Kind.CONFLICT, 409, "Use the running one: interleaf daemon status"),
    _C.DAEMON_TOO_OLD: ErrorSpec(Kind.INVALID, 409, "Update Interleaf; a newer release made this database."),
    _C.DATABASE_CORRUPT: ErrorSpec(
        Kind.INTERNAL, 500, "The damaged file was set aside; restore a backup or sync again."
    ),
    _C.PROJECT_BINDING_NOT_FOUND: ErrorSpec(
        Kind.NOT_FOUND, 404, "Bind the directory with: interleaf project bind PROJECT"
    ),
    _C.PROJECT_BINDING_CHANGED: ErrorSpec(
        Kind.CONFLICT, 409, "Reconnect the agent's integration to use the directory's new Project."
    ),
    _C.PROJECT_ACCESS_LOST: ErrorSpec(
        Kind.DENIED, 403, "Ask a Project owner for access; local Drafts are kept."
    ),
    _C.PROJECT_NOT_SYNCED: ErrorSpec(
        Kind.NOT_READY, 409, "Wait for the first sync, or run: interleaf sync --wait"
    ),
    _C.SEARCH_MODEL_PREPARING: ErrorSpec(Kind.NOT_READY, 503, "Try again when the models are prepared."),
    _C.SEARCH_MODEL_UNAVAILABLE: ErrorSpec(
        Kind.UNAVAILABLE, 503, "See: interleaf models status. Then run: interleaf models prepare"
    ),
    _C.SEARCH_INDEX_PREPARING: ErrorSpec(
        Kind.NOT_READY, 503, "Try again in a moment; load and store work meanwhile."
    ),
    _C.ACTIVATION_DEADLINE: ErrorSpec(Kind.UNAVAILABLE, 503, "Try again; the machine was too busy."),
    _C.STORAGE_FULL: ErrorSpec(Kind.UNAVAILABLE, 507, "Free disk space; nothing was changed."),
    _C.SIGNED_OUT: ErrorSpec(Kind.DENIED, 401, "Sign in with: interleaf login --server URL --token-stdin"),
    _C.ACCOUNT_IN_USE: ErrorSpec(
        Kind.CONFLICT, 409, "Submit or discard the present account's Drafts, then sign in elsewhere."
    ),
    _C.ORG_SERVER_UNAVAILABLE: ErrorSpec(
        Kind.UNAVAILABLE, 503, "Check the server's address and the network, then try again."
    ),
    _C.CLIENT_TOO_OLD: ErrorSpec(Kind.INVALID, 409, "Update Interleaf; the server sent a newer change."),
    _C.OUTBOX_OPERATION_NOT_FOUND: ErrorSpec(
        Kind.NOT_FOUND, 404, "List the operations with: interleaf outbox list"
    ),
    _C.RUN_NOT_FOUND: ErrorSpec(Kind.NOT_FOUND, 404, "List the runs with: interleaf runs list"),
    _C.RUN_OUTDATED: ErrorSpec(Kind.CONFLICT, 409, "Ask the same again, and use the new run."),
    _C.SYNC_INCOMPLETE: ErrorSpec(Kind.UNAVAILABLE, 503, "See what is left with: interleaf outbox list"),
    _C.CHAIN_BROKEN: ErrorSpec(
        Kind.INTERNAL, 500, "The history received does not verify; it was not applied. Tell the operator."
    ),
    _C.UNAUTHENTICATED: ErrorSpec(
        Kind.DENIED, 401, "Sign in again; the token is missing, expired or revoked."
    ),
    _C.FORBIDDEN: ErrorSpec(Kind.DENIED, 403, "Ask somebody with the needed role."),
    _C.NOT_FOUND: ErrorSpec(Kind.NOT_FOUND, 404, "Check the id; it may not exist or not be yours to see."),
    _C.METHOD_NOT_ALLOWED: ErrorSpec(Kind.INVALID, 405, "See the API reference for this path's methods."),
    _C.PAYLOAD_TOO_LARGE: ErrorSpec(Kind.INVALID, 413, "Send less in one request."),
    _C.UNSUPPORTED_MEDIA_TYPE: ErrorSpec(Kind.INVALID, 415, "Send application/json."),
    _C.RATE_LIMITED: ErrorSpec(Kind.UNAVAILABLE, 429, "Wait as long as Retry-After says."),
    _C.PRECONDITION_REQUIRED: ErrorSpec(Kind.INVALID, 428, "Send If-Match with the version you inspected."),
    _C.PRECONDITION_FAILED: ErrorSpec(
        Kind.CONFLICT, 412, "The ref moved; read the newest state and decide again."
    ),
    _C.VERSION_CONFLICT: ErrorSpec(Kind.CONFLICT, 409, "Read the newest version and decide again."),
    _C.ALREADY_EXISTS: ErrorSpec(Kind.CONFLICT, 409, "Use the existing one, or choose another name."),
    _C.LAST_OWNER: ErrorSpec(Kind.CONFLICT, 409, "Make somebody else an owner first."),
    _C.OPERATION_OUT_OF_ORDER: ErrorSpec(
        Kind.CONFLICT, 409, "Send the operations from the expected ordinal on."
    ),
    _C.IDEMPOTENCY_MISMATCH: ErrorSpec(
        Kind.INVALID, 422, "This operation id was used with another content; allocate a new one."
    ),
    _C.COMMIT_UNKNOWN: ErrorSpec(Kind.CONFLICT, 409, "Take a snapshot."),
    _C.RESYNC_REQUIRED: ErrorSpec(Kind.CONFLICT, 410, "Start again from a snapshot and without a cursor."),
    _C.REVIEW_ALREADY_APPROVED: ErrorSpec(
        Kind.CONFLICT, 409, "Merge the approved Review, or ask its author to withdraw it."
    ),
    _C.REVIEW_CLOSED: ErrorSpec(Kind.CONFLICT, 409, "Make a new Review; this one is final."),
    _C.REVIEW_NOT_APPROVED: ErrorSpec(Kind.CONFLICT, 409, "Collect the missing approvals first."),
    _C.SELF_APPROVAL_NOT_ALLOWED: ErrorSpec(Kind.DENIED, 403, "Ask another reviewer to decide."),
    _C.RECONCILIATION_REQUIRED: ErrorSpec(
        Kind.CONFLICT, 409, "The author must bring the Drafts up to the newest published state."
    ),
    _C.CONFLICT_MARKERS: ErrorSpec(Kind.INVALID, 400, "Take the marker lines out of the resolution."),
    _C.ADAPTATION_EXISTS: ErrorSpec(Kind.CONFLICT, 409, "Edit the existing adaptation instead."),
    _C.SCHEMA_MISMATCH: ErrorSpec(Kind.INVALID, 500, "Run: interleaf-server migrate"),
    _C.DATABASE_UNAVAILABLE: ErrorSpec(Kind.UNAVAILABLE, 503, "Check the database, then try again."),
    _C.INTERNAL_ERROR: ErrorSpec(Kind.INTERNAL, 500, "Look for the id in the log."),
}

_RETRYABLE: Final = frozenset({Kind.NOT_READY, Kind.UNAVAILABLE})


class InterleafError(Exception):
    """An expected failure with a stable code.

    ``message`` is for people and agents: what happened, in one or two sentences, the next step
    included. Without one, the code's own remedy stands. ``details`` is JSON-able.
    """

    def __init__(
        self, code: ErrorCode, message: str | None = None, *, details: Mapping[str, Any] | None = None
    ) -> None:
        self.code = code
        self.message = message or ERRORS[code].remedy
        self.details: dict[str, Any] = dict(details or {})
        super().__init__(f"{code}: {self.message}")

    @property
    def kind(self) -> Kind:
        """What a caller can do about it."""
        return ERRORS[self.code].kind

    @property
    def status(self) -> int:
        """The HTTP status that carries this code."""
        return ERRORS[self.code].status

    @property
    def remedy(self) -> str:
        """The next step, in one sentence."""
        return ERRORS[self.code].remedy

    @property
    def retryable(self) -> bool:
        """Whether the same request, unchanged, may succeed later."""
        return self.kind in _RETRYABLE

    def as_wire(self) -> dict[str, Any]:
        """Return ``{"code", "message", "details"}``, the error body of every door.

        The details of ``invalid_arguments`` are the list of ``{"field", "problem"}`` itself.
        """
        details: Any = self.details
        if self.code is ErrorCode.INVALID_ARGUMENTS and ("fields" in details or not details):
            details = details.get("fields", [])
        return {"code": self.code.value, "message": self.message, "details": details}

    @classmethod
    def from_wire(cls, body: Mapping[str, Any]) -> InterleafError:
        """Rebuild an error from its body; an unknown code becomes ``internal_error`` and is named."""
        details = body.get("details")
        if isinstance(details, list):
            details = {"fields": details}
        details = dict(details) if isinstance(details, Mapping) else {}
        try:
            code = ErrorCode(str(body.get("code")))
        except ValueError:
            return cls(
                ErrorCode.INTERNAL_ERROR,
                f"An unknown error came back ({body.get('code')}); update Interleaf on this machine.",
                details=details,
            )
        return cls(code, str(body.get("message") or "") or None, details=details)

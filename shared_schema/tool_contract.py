"""The ``memory`` tool: one model per operation, the only source of schema and validation.

Argument ``{"op": {"<activate|load|store>": {…}}}``. Unknown fields, nulls and other letter case are
refused at every level with ``invalid_arguments``, whose details are a list of
``{"field", "problem"}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from shared_schema import limits
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Contract, OrgSource, Provenance, Scope
from shared_schema.schema_dialect import plain_schema
from shared_schema.sync_status import SyncStatus

TOOL_NAME: Final = "memory"
PROFILE: Final = "agent_activation.v2"


def _storable(text: str) -> str:
    """Refuse what UTF-8 text in a database or a line protocol cannot hold."""
    if "\x00" in text:
        raise PydanticCustomError("nul", "must not hold NUL characters")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise PydanticCustomError("surrogate", "must be valid Unicode, without lone surrogates") from None
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return text


Text = Annotated[str, AfterValidator(_storable)]
Identifier = Annotated[
    str, Field(min_length=1, max_length=limits.IDENTIFIER_CHARACTERS), AfterValidator(_storable)
]
Hash = Annotated[str, Field(min_length=1, max_length=200)]
Description = Annotated[Text, Field(max_length=limits.DESCRIPTION_CHARACTERS)]


class Input(Contract):
    """Base of every argument object: an optional field is left out, never null."""

    @model_validator(mode="before")
    @classmethod
    def _no_nulls(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            for name, member in value.items():
                if member is None:
                    raise PydanticCustomError(
                        "null", "{name} must be left out instead of null", {"name": name}
                    )
        return value


class Activate(Input):
    """Find what matters for the task at hand."""

    query: Annotated[
        Text, Field(min_length=1, max_length=limits.QUERY_CHARACTERS), AfterValidator(_not_blank)
    ]
    state: Annotated[str, Field(min_length=1, max_length=limits.STATE_BYTES)] | None = None


class Load(Input):
    """Read complete resources by id or exact path."""

    ids: Annotated[list[Identifier], Field(min_length=1, max_length=limits.LOAD_IDS)]
    knownHashes: Annotated[dict[str, Hash], Field(max_length=2 * limits.LOAD_IDS)] | None = None  # noqa: N815 - the wire name of the tool contract

    @field_validator("ids")
    @classmethod
    def _unique(cls, ids: list[str]) -> list[str]:
        if len(set(ids)) != len(ids):
            raise PydanticCustomError("duplicates", "must not name the same id or path twice")
        return ids


class Replacement(Input):
    """One exact replacement; ``new_text`` may be empty."""

    old_text: Annotated[Text, Field(min_length=1)]
    new_text: Text


class Create(Input):
    """A new resource of the Project."""

    path: Identifier
    body: Text
    description: Description | None = None


class Update(Input):
    """Exact replacements in the resource whose complete hash is ``expected_hash``."""

    id: Identifier
    expected_hash: Hash
    replacements: Annotated[list[Replacement], Field(min_length=1, max_length=limits.REPLACEMENTS)]
    description: Description | None = None


class Rename(Input):
    """Another path for the same resource."""

    id: Identifier
    new_path: Identifier
    description: Description | None = None


class Delete(Input):
    """Remove a resource from the Project."""

    id: Identifier
    description: Description | None = None


class Discard(Input):
    """Drop the Draft with this id, or the one on this resource."""

    id: Identifier


STORE_OPERATIONS: Final = ("create", "update", "rename", "delete", "discard")


class Store(Input):
    """One durable proposal."""

    resource: Literal["memory"] = "memory"
    create: Create | None = None
    update: Update | None = None
    rename: Rename | None = None
    delete: Delete | None = None
    discard: Discard | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in STORE_OPERATIONS if getattr(self, name) is not None]
        if len(given) != 1:
            raise PydanticCustomError(
                "one_operation",
                "must hold exactly one of create, update, rename, delete, discard (got {given})",
                {"given": ", ".join(given) or "none"},
            )
        return self

    @property
    def operation(self) -> Create | Update | Rename | Delete | Discard:
        """The one that was given."""
        found = self.create or self.update or self.rename or self.delete or self.discard
        assert found is not None  # noqa: S101 - the validator above guarantees it
        return found


class Op(Input):
    """Exactly one operation."""

    activate: Activate | None = None
    load: Load | None = None
    store: Store | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in ("activate", "load", "store") if getattr(self, name) is not None]
        if len(given) != 1:
            raise PydanticCustomError(
                "one_operation",
                "must hold exactly one of activate, load, store (got {given})",
                {"given": ", ".join(given) or "none"},
            )
        return self


class MemoryArguments(Input):
    """The tool's arguments."""

    op: Op


def parse_arguments(arguments: object) -> Activate | Load | Store:
    """Return the one operation, or raise ``invalid_arguments`` naming every wrong field."""
    try:
        op = MemoryArguments.model_validate(arguments).op
    except ValidationError as error:
        raise invalid_arguments(error) from None
    found = op.activate or op.load or op.store
    assert found is not None  # noqa: S101 - the validator of Op guarantees it
    return found


def invalid_arguments(error: ValidationError) -> InterleafError:
    """Turn a validation error into ours: fields by dotted name, problems in plain words, no input."""
    fields = [_problem(item) for item in error.errors(include_url=False, include_input=False)][:50]
    first = fields[0]
    where = first["field"] or "the arguments"
    more = f" ({len(fields) - 1} more in details)" if len(fields) > 1 else ""
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS, f"{where}: {first['problem']}{more}.", details={"fields": fields}
    )


def _problem(item: ErrorDetails) -> dict[str, str]:
    location = [str(part) for part in item["loc"] if part != "[key]"]
    kind, context = item["type"], item.get("ctx", {})
    if kind == "null":
        location.append(str(context.get("name", "")))
        return {"field": ".".join(location), "problem": "must be left out instead of null"}
    wording = _WORDING.get(kind)
    problem = wording.format(**context) if wording else item["msg"]
    return {"field": ".".join(location), "problem": problem}


_WORDING: Final[dict[str, str]] = {
    "extra_forbidden": "unknown field",
    "missing": "is required",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "string_too_short": "must have at least {min_length} character",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} item",
    "too_long": "must have at most {max_length} items",
    "literal_error": "must be {expected}",
    "string_unicode": "must be valid Unicode, without lone surrogates",
}


# --- answers --------------------------------------------------------------------------------


class Fragment(Contract):
    """One unit of memory; ``content`` is omitted on ``reuse``."""

    action: Literal["add", "replace", "reuse"]
    unit_key: str
    content_hash: str
    resource_id: str
    scope: Scope
    kind: Literal["memory"] = "memory"
    path: str
    heading_path: list[str]
    provenance: Provenance | None = None
    """With ``description`` and ``content`` omitted on ``reuse``."""
    description: str | None = None
    content: str | None = None


class RemovedUnit(Contract):
    """A known unit that no longer exists or may no longer be seen."""

    unit_key: str
    resource_id: str


class ActivateAnswer(Contract):
    """Fragments in order of relevance, and what to forget."""

    index_revision: str
    profile: Literal["agent_activation.v2"] = PROFILE
    next_state: str
    fragments: list[Fragment]
    removed: list[RemovedUnit]
    run_id: str | None = None
    index_lag: Literal[True] | None = None


class OpenDraft(Contract):
    """The Draft that a reader sees."""

    draft_id: str
    freshness: Freshness
    reconciliation: Reconciliation


class LoadedResource(Contract):
    """One complete resource; ``content`` is omitted when ``changed`` is false."""

    resource_id: str
    scope: Scope
    kind: Literal["memory"] = "memory"
    path: str
    title: str
    description: str
    content_hash: str
    changed: bool
    provenance: Provenance
    org_source: OrgSource | None = None
    draft: OpenDraft | None = None
    content: str | None = None


class LoadAnswer(Contract):
    """Resources in the order of the request."""

    resources: list[LoadedResource]


class StoreAnswer(Contract):
    """What was made durable on this machine; it says nothing about publication."""

    local_operation_id: str
    draft_id: str
    resource_id: str
    queued: bool
    sync_status: SyncStatus
    path: str | None = None
    content_hash: str | None = None
    """Of the complete resource now; none after delete or discard."""
    adapts: str | None = None
    """The Org resource that the new adaptation replaces in this Project."""


def input_schema() -> dict[str, Any]:
    """Return the advertised input schema: no ``$ref``, ``anyOf`` or ``oneOf`` anywhere."""
    schema = plain_schema(MemoryArguments.model_json_schema())
    op = schema["properties"]["op"]
    op["minProperties"] = op["maxProperties"] = 1
    store = op["properties"]["store"]
    store["minProperties"], store["maxProperties"] = 1, 2
    return schema


_ANSWER_STRINGS: Final = (
    *("index_revision", "profile", "next_state", "run_id"),
    *("local_operation_id", "draft_id", "resource_id", "sync_status", "path", "content_hash", "adapts"),
)


def output_schema() -> dict[str, Any]:
    """Return one plain object that names the top-level properties of every answer and of an error."""
    properties: dict[str, Any] = {name: {"type": "string"} for name in _ANSWER_STRINGS}
    properties |= {name: {"type": "array"} for name in ("fragments", "removed", "resources")}
    properties |= {name: {"type": "boolean"} for name in ("queued", "index_lag")}
    properties["error"] = {"type": "object"}
    return {"type": "object", "properties": properties}


def answer_schemas() -> dict[str, dict[str, Any]]:
    """Return the full schema of each answer, for the documentation and the tests."""
    models: dict[str, type[Contract]] = {"activate": ActivateAnswer, "load": LoadAnswer, "store": StoreAnswer}
    return {name: model.model_json_schema() for name, model in models.items()}

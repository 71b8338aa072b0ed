"""Routes as data: each names its models once, for validation, for the answer and for OpenAPI 3.1.

::

    routes = RouteTable()

    @routes.route("POST", "/reviews", request=ReviewCreate, answer=ReviewDetail, status=201,
                  summary="Open a Review.")
    def create(call: Call, body: ReviewCreate) -> ReviewDetail: ...

A handler gets the `Call`, the parts of its path by name, ``body`` where ``request`` is set and
``query`` where ``query`` is set. It returns the answer's model, an `Answer` (a model with a status
or a tag of its own), None (204), or a Flask response for what is streamed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from werkzeug.datastructures import Headers

from org_server.config import Settings
from org_server.domain.permissions import Actor
from org_server.http import conditional
from org_server.services.feed_watch import FeedWatch
from org_server.store.unit_of_work import UnitOfWorkFactory
from shared_schema.errors import ErrorCode
from shared_schema.org_contract import API_PREFIX, ErrorAnswer

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Precondition = Literal["version", "ref"]
_F = TypeVar("_F", bound=Callable[..., Any])
_PATH_PART: Final = re.compile(r"<(\w+)>")


@dataclass(frozen=True)
class Call:
    """One authenticated request, and what its handler may use."""

    actor: Actor
    units: UnitOfWorkFactory
    settings: Settings
    request_id: str
    headers: Headers
    watch: FeedWatch
    """The long polls that this process may hold."""
    stopping: threading.Event
    """Set when the process shuts down: a long poll answers at once."""

    def if_match_version(self) -> int:
        """Return the version in ``If-Match``; 428 without it."""
        return conditional.version_from(self.headers.get("If-Match"))

    def if_match_ref(self) -> str | None:
        """Return the commit id in ``If-Match`` (None: a ref without commits); 428 without it."""
        return conditional.ref_from(self.headers.get("If-Match"))


@dataclass(frozen=True)
class Answer:
    """An answer that is more than its model."""

    model: BaseModel
    status: int | None = None
    etag: str | None = None
    """A quoted tag; None: made from the answer on routes with ``tagged``."""
    version: int | None = None
    """Goes into the tag, so that it can be sent back in ``If-Match``."""


@dataclass(frozen=True)
class Route:
    """One method of one path."""

    method: Method
    path: str
    """Below the API's prefix; parts in angle brackets."""
    handler: Callable[..., Any]
    summary: str
    request: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    media_type: str = "application/json"
    status: int = 200
    tagged: bool = False
    """A single object: ETag on the answer, 304 for a matching ``If-None-Match``."""
    precondition: Precondition | None = None
    keyed: bool = False
    """Takes an ``Idempotency-Key``."""
    secret_id: tuple[str, ...] | None = None
    """Where the answer holds a secret: the fields that lead to the id of what it belongs to."""
    errors: tuple[ErrorCode, ...] = ()
    """What it may refuse with, beyond what its form implies (`documented.errors_of`)."""

    @property
    def name(self) -> str:
        """A unique name, the OpenAPI operation id too."""
        return f"{self.handler.__module__.rsplit('.', 1)[-1]}_{self.handler.__name__}"


@dataclass
class RouteTable:
    """The routes of one module."""

    routes: list[Route] = field(default_factory=list)

    def route(
        self,
        method: Method,
        path: str,
        *,
        summary: str,
        request: type[BaseModel] | None = None,
        query: type[BaseModel] | None = None,
        answer: type[BaseModel] | None = None,
        media_type: str = "application/json",
        status: int | None = None,
        tagged: bool = False,
        precondition: Precondition | None = None,
        keyed: bool | None = None,
        secret_id: tuple[str, ...] | None = None,
        errors: tuple[ErrorCode, ...] = (),
    ) -> Callable[[_F], _F]:
        """Add the decorated handler.

        Without ``answer`` and ``status`` it answers 204; unless ``keyed`` is False, a POST takes an
        ``Idempotency-Key``.
        """

        def add(handler: _F) -> _F:
            fallback = 200 if answer is not None or media_type != "application/json" else 204
            self.routes.append(
                Route(
                    method,
                    path,
                    handler,
                    summary,
                    request,
                    query,
                    answer,
                    media_type,
                    status or fallback,
                    tagged,
                    precondition,
                    method == "POST" if keyed is None else keyed,
                    secret_id,
                    errors,
                )
            )
            return handler

        return add


def document(tables: Iterable[RouteTable], version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the routes, from the models that validate them."""
    routes = [route for table in tables for route in table.routes]
    models = {ErrorAnswer: None} | {
        model: None for route in routes for model in (route.request, route.answer) if model is not None
    }
    _, schemas = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for route in sorted(routes, key=lambda item: (item.path, item.method)):
        path = API_PREFIX + _PATH_PART.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Interleaf Organization server",
            "version": version,
            "description": "Times are epoch milliseconds. Ids and cursors are opaque.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas.get("$defs", {}),
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PATH_PART.findall(route.path)
    ]
    parameters += _query_parameters(route.query)
    if route.precondition is not None:
        described = {
            "version": "The version or ETag that was read.",
            "ref": "The quoted commit id of the ref.",
        }
        parameters.append(_header("If-Match", described[route.precondition], required=True))
    if route.tagged:
        parameters.append(_header("If-None-Match", "The ETag of an earlier answer.", required=False))
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "responses": _responses(route),
    }
    if route.request is not None:
        operation["requestBody"] = {"required": True, "content": _content(route.request)}
    return operation


def _responses(route: Route) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Success."}
    if route.answer is not None:
        success["content"] = _content(route.answer, route.media_type)
    elif route.status != 204:
        success["content"] = {route.media_type: {}}
    responses = {str(route.status): success}
    if route.tagged:
        responses["304"] = {"description": "Not changed since."}
    responses["default"] = {"description": "An error.", "content": _content(ErrorAnswer)}
    return responses


def _query_parameters(query: type[BaseModel] | None) -> list[dict[str, Any]]:
    if query is None:
        return []
    schema: Mapping[str, Any] = query.model_json_schema()
    definitions = schema.get("$defs", {})
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", []),
            "schema": _inline(shape, definitions),
        }
        for name, shape in schema["properties"].items()
    ]


def _inline(shape: Any, definitions: Mapping[str, Any]) -> Any:
    """Put a parameter's few definitions in place: it has no components of its own."""
    if isinstance(shape, dict):
        if (target := shape.get("$ref")) is not None:
            return _inline(definitions[target.rsplit("/", 1)[-1]], definitions)
        return {name: _inline(part, definitions) for name, part in shape.items()}
    if isinstance(shape, list):
        return [_inline(part, definitions) for part in shape]
    return shape


def _header(name: str, description: str, *, required: bool) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": required,
        "description": description,
        "schema": {"type": "string"},
    }


def _content(model: type[BaseModel], media_type: str = "application/json") -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}

"""JSON Schema in the plain dialect that every agent host accepts.

Several hosts drop tools whose schema holds ``$ref`` or combinators, so definitions are inlined and
an optional field, which pydantic describes as "this or null", is described as "this".
"""

from __future__ import annotations

from typing import Any

_NOISE = frozenset({"title", "default", "description"})


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return ``schema`` with definitions inlined, nulls dropped and no titles, defaults or prose."""
    definitions = schema.get("$defs", {})
    plain = _plain({key: value for key, value in schema.items() if key != "$defs"}, definitions)
    assert isinstance(plain, dict)  # noqa: S101 - an object maps to an object
    return plain


def _plain(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_plain(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _plain(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in node:
        choices = [choice for choice in node["anyOf"] if choice != {"type": "null"}]
        if len(choices) != 1:
            raise ValueError("only 'this or null' can be said without a combinator")
        return _plain({**{k: v for k, v in node.items() if k != "anyOf"}, **choices[0]}, definitions)
    if "properties" in node:
        members = {name: _plain(member, definitions) for name, member in node["properties"].items()}
        rest = {k: v for k, v in node.items() if k != "properties" and k not in _NOISE}
        return {**_plain(rest, definitions), "properties": members}
    return {key: _plain(value, definitions) for key, value in node.items() if key not in _NOISE}

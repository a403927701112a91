"""JSON Schema (draft 2020-12) of the manifest, from the classes that read it (01 §2.10).

For `paddock check --schema`, for the reference, and for the sentences that say what a key takes. Keys whose
feature is not in this version carry `x-not-available` and say so in their description.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from framework.manifest.schema import ManifestTable
from framework.manifest.unavailable import row_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _WithoutNull(GenerateJsonSchema):
    """TOML has no null: a key that may be absent takes what it takes when it is there."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def manifest_schema() -> dict[str, Any]:
    """The schema as a fresh JSON value."""
    return deepcopy(_schema())


@cache
def _schema() -> dict[str, Any]:
    schema = ManifestTable.model_json_schema(schema_generator=_WithoutNull)
    for name, table in schema["$defs"].items():
        _finish(name, table, schema["$defs"])
    _finish("ManifestTable", schema, schema["$defs"])
    return {"$schema": DIALECT, **schema, "title": "Paddock manifest"}


def _finish(table_name: str, schema: dict[str, Any], tables: dict[str, Any]) -> None:
    """Drop class names and null defaults; one-line descriptions; mark what is not available yet."""
    schema.pop("title", None)
    for variant in schema.get("anyOf", [schema]):
        variant.pop("title", None)
        schema["description"] = " ".join(
            (schema.get("description") or variant.get("description", "")).split()
        )
        for key, node in variant.get("properties", {}).items():
            if node.get("default", ...) is None:
                del node["default"]
            # Pydantic leaves out a description that is the same as that of the table behind the key.
            behind = tables.get(node.get("$ref", "").rpartition("/")[2], {})
            node["description"] = " ".join((node.get("description") or behind["description"]).split())
            row = row_of(table_name, key)
            if row is not None:
                node["x-not-available"] = row.sentence
                node["description"] = f"{node['description']} {row.note}"


@cache
def node_at(table_name: str, path: tuple[str | int, ...]) -> dict[str, Any]:
    """The part of the schema for a key below a table class; empty when there is none."""
    node = _schema()["$defs"].get(table_name, {})
    for part in path:
        node = _step(resolved(node), part)
    return resolved(node)


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    """The node behind a `$ref`."""
    reference = node.get("$ref", "")
    found: dict[str, Any] = _schema()["$defs"][reference.rpartition("/")[2]] if reference else node
    return found


def _step(node: dict[str, Any], part: str | int) -> dict[str, Any]:
    for variant in map(resolved, node.get("anyOf", [node])):
        if isinstance(part, int):
            found = variant.get("items")
        else:
            found = variant.get("properties", {}).get(part) or variant.get("additionalProperties")
        if isinstance(found, dict):
            return found
    return {}

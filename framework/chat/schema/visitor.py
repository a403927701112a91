"""What the modules for kinds of values see of the conversion they are part of, and its error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from framework.chat.gbnf import Rules

Schema = Mapping[str, Any]


class SchemaError(ValueError):
    """A schema that no grammar can be made of; the text names the place in it and the trouble."""

    def __init__(self, path: str, trouble: str) -> None:
        super().__init__(f"JSON schema at {path}: {trouble}")


class Visitor(Protocol):
    """The conversion in progress; made by chat.json_schema."""

    rules: Rules

    def visit(self, schema: Any, wish: str, path: str) -> str:
        """The name of a rule for the values that a subschema allows."""
        ...

    def any_value(self) -> str:
        """The name of the rule for every JSON value."""
        ...

    def string(self) -> str:
        """The name of the rule for every JSON string."""
        ...

    def string_char(self) -> str:
        """The name of the rule for one character of a JSON string."""
        ...


def count_of(schema: Schema, key: str, path: str) -> int | None:
    """A keyword that is a count; None where it is absent."""
    value = schema.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or value < 0:
        raise SchemaError(path, f"{key} has to be a whole number from 0, not {value!r:.40}")
    return int(value)


def limits_of(schema: Schema, least_key: str, most_key: str, path: str) -> tuple[int, int | None]:
    """A lower and an upper count, checked against each other."""
    least, most = count_of(schema, least_key, path) or 0, count_of(schema, most_key, path)
    if most is not None and most < least:
        raise SchemaError(path, f"{most_key} {most} is below {least_key} {least}")
    return least, most


def schema_at(schema: Schema, key: str, path: str) -> Schema:
    """A keyword that holds named subschemas; empty where it is absent."""
    value = schema.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SchemaError(path, f"{key} has to be an object, not {type(value).__name__}")
    return value

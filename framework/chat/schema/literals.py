"""Fixed values of a JSON schema: `const` and `enum`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from framework.chat.gbnf import quote
from framework.chat.schema.visitor import SchemaError

MAX_VALUES = 10_000
MAX_ALIKE = 4
"""Texts with the same first character that are written out one by one."""
MAX_NESTED = 16
"""Beginnings within beginnings."""
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def literals_body(values: Any, types: Sequence[str] | None, path: str) -> str:
    """The values that are of one of the types, each written without blanks."""
    if not isinstance(values, list):
        raise SchemaError(path, f"enum has to be an array, not {type(values).__name__}")
    kept = [value for value in values if types is None or any(is_of_type(value, name) for name in types)]
    if not kept:
        raise SchemaError(path, "no value is allowed here")
    if len(kept) > MAX_VALUES:
        raise SchemaError(path, f"{len(kept)} fixed values; {MAX_VALUES} are allowed")
    return _choice(list(dict.fromkeys(_written(value, path) for value in kept)))


def literal(value: Any, path: str) -> str:
    """A literal of one JSON value."""
    return quote(_written(value, path))


def _choice(texts: list[str], depth: int = 0) -> str:
    """One of the texts. Shared beginnings are read once: the engine follows each alternative by itself."""
    if len(texts) <= MAX_ALIKE or depth == MAX_NESTED:
        return " | ".join(map(quote, texts))
    first, last = min(texts), max(texts)
    n_shared = next(at for at in range(len(last)) if first[at : at + 1] != last[at])
    groups: dict[str, list[str]] = {}
    for text in texts:
        rest = text[n_shared:]
        groups.setdefault(rest[:1], []).append(rest)
    choice = " | ".join(_choice(group, depth + 1) for group in groups.values())
    return f"{quote(first[:n_shared])} ({choice})" if n_shared else choice


def _written(value: Any, path: str) -> str:
    """The JSON text of a value."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SchemaError(path, f"a fixed value is no JSON: {error}") from error


def is_of_type(value: Any, name: str) -> bool:
    """Whether a value is of a type of JSON schema; whole numbers are integers however they are written."""
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])

"""One row for each plain request field: its names, JSON type, range and where its value goes (12 §5).

Called by nativeserver.fields for its tables. Fields with a form of their own (lists, grammars, biases) have
readers in sampling_fields and constraint_fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from framework.nativeserver.errors import ApiError

Kind = Literal["number", "integer", "boolean", "string"]
Outside = Literal["refuse", "clamp", "default"]
INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)
FLOAT32_MAX = 3.4028234663852886e38
"""The core holds numbers in 32 bits."""
SAFE_INTEGER = 2**53 - 1
"""Milliseconds and seeds beyond this were no whole numbers in the client's JSON library."""


@dataclass(frozen=True)
class Field:
    """A plain field. A value of `null` is no value (12 §5.5)."""

    names: tuple[str, ...]
    """The first name a body has counts; the first of all is also the name in the server's defaults."""
    kind: Kind
    target: str | None = None
    """Attribute it is stored in, None: it is only checked."""
    low: float = -FLOAT32_MAX
    high: float = FLOAT32_MAX
    outside: Outside = "refuse"
    """What a number outside the range does: an error, the nearest limit as in llama-server, or no value."""


def fault(name: str, text: str) -> ApiError:
    """The error about one field of a body."""
    return ApiError("invalid_request", f"Field '{name}': {text}")


def json_type(value: Any) -> str:
    """The name of a value's JSON type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"


def wrong_type(name: str, wanted: str, value: Any) -> ApiError:
    """The error about a field of the wrong JSON type."""
    return fault(name, f"type must be {wanted}, but is {json_type(value)}")


def lookup(body: Mapping[str, Any], names: Iterable[str]) -> tuple[str, Any] | None:
    """The first of the names that has a value, and the value."""
    for name in names:
        value = body.get(name)
        if value is not None:
            return name, value
    return None


def read_field(field: Field, body: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    """The value for the field's target; None: the core's own default stays. Raises ApiError."""
    found = lookup(body, field.names)
    value = None if found is None else checked(field, *found)
    if value is None:
        found = lookup(defaults, field.names[:1])
        value = None if found is None else checked(field, *found)
    return value


def checked(field: Field, name: str, value: Any) -> Any:
    """A value of the field's type and in its range; None when it counts as absent."""
    if field.kind == "boolean":
        if not isinstance(value, bool):
            raise wrong_type(name, "boolean", value)
        return value
    if field.kind == "string":
        if not isinstance(value, str):
            raise wrong_type(name, "string", value)
        return value
    return _checked_number(field, name, value)


def _checked_number(field: Field, name: str, value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(name, "number", value)
    if not math.isfinite(value):
        raise fault(name, "must be a finite number")
    if field.kind == "integer" and value != int(value):
        raise fault(name, f"must be a whole number, but got {value}")
    if not field.low <= value <= field.high:
        if field.outside == "refuse":
            raise fault(
                name,
                f"value must be between {_shown(field.low)} and {_shown(field.high)}, but got {value}",
            )
        if field.outside == "default":
            return None
        value = min(max(value, field.low), field.high)
    return int(value) if field.kind == "integer" else float(value)


def _shown(limit: float) -> str:
    return str(int(limit)) if limit == int(limit) and abs(limit) <= SAFE_INTEGER else f"{limit:g}"

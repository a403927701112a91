"""Two schemas that hold at once, as one (`allOf`, and keywords beside `$ref` or `anyOf`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from framework.chat.schema.visitor import Schema, SchemaError

COMBINING = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_LARGER_WINS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_SMALLER_WINS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_BOTH_HOLD = ("items", "additionalProperties", "additionalItems")
_BY_NAME = ("properties", "patternProperties")
_ONE_ONLY = ("pattern", "format", "prefixItems")


def merged(one: Any, other: Any, path: str) -> Any:
    """A schema for the values that both allow; neither has a combining keyword at its top."""
    if one is True or other is True:
        return other if one is True else one
    if one is False or other is False:
        return False
    result = dict(one)
    for key, value in other.items():
        result[key] = _joint(key, result[key], value, path) if key in result else value
    if "const" in result and "enum" in result:
        result["enum"] = _intersection(result["enum"], [result.pop("const")], path)
    return result


def _joint(key: str, one: Any, other: Any, path: str) -> Any:
    """One keyword that both have. Keywords that no grammar can express keep the first value."""
    if key in _BY_NAME or key in ("$defs", "definitions"):
        return _by_name(one, other, path)
    if key in _BOTH_HOLD:
        return False if False in (one, other) else {"allOf": [one, other]}
    if key in _SPECIAL:
        return _SPECIAL[key](one, other, path)
    if key in _ONE_ONLY and one != other:
        raise SchemaError(path, f"two different values of {key} can't be combined")
    return one


def _by_name(one: Any, other: Any, path: str) -> Schema:
    if not isinstance(one, dict) or not isinstance(other, dict):
        raise SchemaError(path, "properties have to be objects")
    return {
        **one,
        **{name: {"allOf": [one[name], value]} if name in one else value for name, value in other.items()},
    }


def _tightest(pick: Callable[..., Any]) -> Callable[[Any, Any, str], Any]:
    def joint(one: Any, other: Any, path: str) -> Any:
        try:
            return pick(one, other)
        except TypeError as error:
            raise SchemaError(path, "bounds have to be numbers") from error

    return joint


def _required(one: Any, other: Any, path: str) -> list[Any]:
    if not isinstance(one, list) or not isinstance(other, list):
        raise SchemaError(path, "required has to be an array of names")
    return [*one, *(name for name in other if name not in one)]


def _types(one: Any, other: Any, path: str) -> list[Any]:
    first, second = (value if isinstance(value, list) else [value] for value in (one, other))
    both = [name for name in first if name in second or (name == "integer" and "number" in second)]
    both += [name for name in second if name == "integer" and "number" in first and name not in both]
    if not both:
        raise SchemaError(path, f"no value is both {one!r:.40} and {other!r:.40}")
    return both


def _intersection(one: Any, other: Any, path: str) -> list[Any]:
    if not isinstance(one, list) or not isinstance(other, list):
        raise SchemaError(path, "enum has to be an array")
    allowed = {json.dumps(value, sort_keys=True) for value in other}
    return [value for value in one if json.dumps(value, sort_keys=True) in allowed]


def _const(one: Any, other: Any, path: str) -> Any:
    if not _intersection([one], [other], path):
        raise SchemaError(path, "two different values of const can't be combined")
    return one


_SPECIAL: dict[str, Callable[[Any, Any, str], Any]] = {
    **dict.fromkeys(_LARGER_WINS, _tightest(max)),
    **dict.fromkeys(_SMALLER_WINS, _tightest(min)),
    "required": _required,
    "type": _types,
    "enum": _intersection,
    "const": _const,
}

"""Tables whose content goes into JSON bodies: template arguments, request defaults and forced fields.

TOML can say what JSON cannot (dates, nan, inf); that, and nesting without end, is refused here.
"""

from __future__ import annotations

import math
from typing import Any

from framework.manifest.bad_value import BadValue
from framework.manifest.key_paths import dotted

# Parsers on the way refuse deeper bodies; no request field is nested like that.
JSON_DEPTH = 16
LOWEST_NUMBER, HIGHEST_NUMBER = -(2**63), 2**64 - 1
SAMPLING_NUMBERS = frozenset(
    {"temperature", "top_p", "top_k", "min_p", "repeat_penalty", "repetition_penalty"}
    | {"presence_penalty", "frequency_penalty", "max_tokens", "seed"}
)
CLIENT_FIELDS = frozenset({"model", "stream"})


def parse_json_table(value: Any) -> dict[str, Any]:
    """A table that JSON can hold."""
    if not isinstance(value, dict):
        raise BadValue("wrong_type", "a table, as in { name = 1 }")
    _check(value, ())
    return value


def parse_request_fields(value: Any) -> dict[str, Any]:
    """Fields of a request body, by the names that the endpoint uses (08 §9.1)."""
    table = parse_json_table(value)
    for name, given in table.items():
        if "-" in name:
            meant = name.replace("-", "_")
            raise BadValue("request_field", f"spelled with _, not -: {name}", suggestion=meant, repeat=False)
        if name in CLIENT_FIELDS:
            raise BadValue(
                "request_field", f"without {name}, which every request says for itself", repeat=False
            )
        if name in SAMPLING_NUMBERS and (isinstance(given, bool) or not isinstance(given, int | float)):
            raise BadValue("request_field", f"a table in which {name} is a number", repeat=False)
    return table


def _check(value: Any, path: tuple[str | int, ...]) -> None:
    if len(path) > JSON_DEPTH:
        raise BadValue("too_deep", f"nested at most {JSON_DEPTH} levels deep", repeat=False)
    if isinstance(value, dict):
        for key, inner in value.items():
            _check(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check(inner, (*path, index))
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadValue("not_json", f"made of values that JSON has: {dotted(path)} is {value}", repeat=False)
    elif isinstance(value, int) and not LOWEST_NUMBER <= value <= HIGHEST_NUMBER:
        raise BadValue(
            "not_json", f"made of numbers of at most 64 bits: {dotted(path)} is larger", repeat=False
        )
    elif not isinstance(value, str | int | float | bool):
        raise BadValue(
            "not_json", f"made of values that JSON has: {dotted(path)} is a date or time", repeat=False
        )

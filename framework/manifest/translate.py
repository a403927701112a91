"""Pydantic's errors in the words of the manifest: the one border where they are translated, completely.

Called by `tables.py`. Each kind of error that the tables can raise has a row, and a test holds that no other
occurs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from framework.manifest.allowed import allowed_text, words_of
from framework.manifest.findings import Findings, Place, shown
from framework.manifest.json_schema import node_at
from framework.manifest.key_paths import KeyPath
from framework.manifest.known_keys import meant, table_class
from framework.manifest.suggest import nearest
from framework.manifest.table import Table

CODES: Mapping[str, str] = {
    "bool_type": "wrong_type",
    "dict_type": "wrong_type",
    "finite_number": "out_of_range",
    "float_type": "wrong_type",
    "greater_than_equal": "out_of_range",
    "int_type": "wrong_type",
    "less_than_equal": "out_of_range",
    "list_type": "wrong_type",
    "literal_error": "bad_value",
    "model_type": "wrong_type",
    "too_short": "out_of_range",
}
"""Error type of pydantic to problem code. Own errors bring their code, unknown keys are apart."""

UNKNOWN_KEY = "extra_forbidden"
KEY_MARK = "[key]"
SECRET_KEYS = frozenset({"certificate", "environment", "key"})
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
NOT_SHOWN = "(not shown)"


def add_errors(error: ValidationError, table: type[Table], place: Place, findings: Findings) -> set[KeyPath]:
    """Note every error of a table that stands at `place`. Returns their paths below the table."""
    errors = error.errors(include_url=False)
    for details in errors:
        _add(details, table, place, findings)
    return {tuple(details["loc"]) for details in errors}


def _add(details: ErrorDetails, table: type[Table], place: Place, findings: Findings) -> None:
    location: KeyPath = tuple(details["loc"])
    is_key = bool(location) and location[-1] == KEY_MARK
    location = location[:-1] if is_key else location
    if details["type"] == UNKNOWN_KEY:
        _add_unknown(location, table, place, findings)
        return
    spot = place.child(*location).key if is_key else _written_part(place, location)
    facts = details.get("ctx", {})
    if "must_be" in facts:
        code, must_be, suggestion = details["type"], facts["must_be"], facts["suggestion"]
    else:
        node = node_at(table.__name__, location)
        code, must_be = CODES[details["type"]], allowed_text(node)
        suggestion = _suggestion(details["input"], node)
    is_secret = bool(SECRET_KEYS.intersection(map(str, location))) or _is_command_line(location, details)
    found = NOT_SHOWN if is_secret else facts.get("found") or shown(details["input"])
    repeated = f", but is {found}" if facts.get("repeat", True) and not is_secret else ""
    message = f"{spot.name} must be {must_be}{repeated}"
    findings.add(code, spot, message, found=found, allowed=must_be, suggestion=suggestion)


def _is_command_line(location: KeyPath, details: ErrorDetails) -> bool:
    """Whether a whole command line stands where a list should: there may be a key in it."""
    return location[-1:] == ("engine_args",) and isinstance(details["input"], str)


def _add_unknown(location: KeyPath, table: type[Table], place: Place, findings: Findings) -> None:
    owner = _owner(table, location[:-1])
    spot = place.child(*location).key
    key = str(location[-1])
    allowed = ", ".join(owner.model_fields)
    suggestion = "" if findings.is_full else meant(key, owner, spot.path[:-1])
    message = f"{spot.name} is not a known key"
    findings.add("unknown_key", spot, message, found=key, allowed=allowed, suggestion=suggestion)


def _owner(table: type[Table], location: KeyPath) -> type[Table]:
    """The class of the table in which a key stands."""
    for part in location:
        field = table.model_fields.get(part) if isinstance(part, str) else None
        table = (table_class(field.annotation) if field else None) or table
    return table


def _written_part(place: Place, location: KeyPath) -> Place:
    """The place of an error as far as it is written: `kv_cache = "x"` has no key `k`."""
    node: Any = place.document.at(place.path)
    for length, part in enumerate(location):
        inside = isinstance(node, dict) and part in node
        if not inside and not (isinstance(node, list) and isinstance(part, int) and part < len(node)):
            return place.child(*location[:length])
        node = node[part]
    return place.child(*location)


def _suggestion(value: Any, node: dict[str, Any]) -> str:
    """A value of the right type that says the same, or the nearest fixed word."""
    if not isinstance(value, str):
        return ""
    word = nearest(value, words_of(node))
    if word:
        return f'"{word}"'
    bare = value.strip()
    is_number = node.get("type") in ("integer", "number") and WHOLE_NUMBER.fullmatch(bare) is not None
    is_boolean = node.get("type") == "boolean" and bare.lower() in ("true", "false")
    return bare.lower() if is_number or is_boolean else ""

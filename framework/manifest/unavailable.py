"""Keys and values that a manifest may spell and that this version does not carry out: the one list of them.

Their syntax is checked like any other; using one is then refused with its sentence, never ignored. When a
feature lands, its row goes away.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fine:
    """Raw values that are accepted, because they ask for what happens anyway; `text` names them."""

    accepts: Callable[[Any], bool]
    text: str


@dataclass(frozen=True)
class Unavailable:
    """A key of a table, what it would do, and what to do instead."""

    table: str
    key: str
    feature: str
    fine: Fine | None = None
    instead: str = "remove the line"

    @property
    def sentence(self) -> str:
        """What a manifest that uses it is told."""
        return f"{self.feature} is not in this version yet; {self.instead}"

    @property
    def note(self) -> str:
        """What the reference says beside the key."""
        return f"In this version only {self.fine.text}." if self.fine else "Not in this version."


def only(value: Any) -> Fine:
    """Accepts this one value, by type and content."""
    return Fine(lambda given: type(given) is type(value) and given == value, f"`{json.dumps(value)}`")


def _rows(table: str, *rows: tuple[Any, ...]) -> list[Unavailable]:
    return [Unavailable(table, *row) for row in rows]


UNAVAILABLE = (
    *_rows(
        "server",
    ),
    *_rows(
        "access",
        ("full_tools", "the server-side tool loop", only(False)),
    ),
    *_rows(
        "engines",
        ("system_rocm", "using the host's ROCm libraries"),
    ),
    # These hold for `[defaults]` too.
    *_rows(
        "models",
        ("on_drift", "watching for drift"),
        ("voice_format", "speech"),
    ),
)

UNAVAILABLE_TABLES = {
    "audio": "audio is not in this version yet; remove the table",
    "diffusion": "diffusion is not in this version yet; remove the table",
}
NEVER_TABLES = {"profiles": "profiles are not a feature: use includes"}

_BY_KEY = {(row.table, row.key): row for row in UNAVAILABLE}
_CLASS_TABLES = {
    "ServerTable": "server",
    "AccessTable": "access",
    "EngineTable": "engines",
    "ModelTable": "models",
    "DefaultsTable": "models",
}


def refusal(table: str, key: str, value: Any) -> str | None:
    """The sentence that refuses a raw value of a key, or None when the product carries it out."""
    row = _BY_KEY.get((table, key))
    if row is None or (row.fine is not None and row.fine.accepts(value)):
        return None
    return row.sentence


def row_of(class_name: str, key: str) -> Unavailable | None:
    """The row for a key of a table class; None when every value of it is carried out."""
    return _BY_KEY.get((_CLASS_TABLES.get(class_name, ""), key))

"""Values of changed fields with their units, for events and pages; programs get them as they are. Pure."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from framework.reconcile.compare import PART_NAMES
from framework.values.request import LiveSettings, PoolLimits, RestartPolicy
from framework.values.units_text import duration, size

_SETTINGS = [(one.name, str(one.metadata["manifest"])) for one in fields(LiveSettings)]
_RESTARTS = [(one.name, f"restart.{PART_NAMES.get(one.name, one.name)}") for one in fields(RestartPolicy)]
SECONDS = frozenset(name for code, name in (*_SETTINGS, *_RESTARTS) if code.endswith("_s"))
BYTES = frozenset(name for code, name in _SETTINGS if code.endswith("_bytes"))
# Of a pool: the table's own name may hold anything, so only the last part is looked at.
POOL_PREFIX = "pools."
POOL_BYTES = frozenset(one.name.removesuffix("_bytes") for one in fields(PoolLimits) if "_bytes" in one.name)


def value_with_unit(field: str, value: Any) -> str | None:
    """The value in words, where it is a number of seconds or bytes; None for all others."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if field in SECONDS:
        return duration(float(value))
    of_pool = field.startswith(POOL_PREFIX) and field.rpartition(".")[2] in POOL_BYTES
    return size(int(value)) if of_pool or field in BYTES else None

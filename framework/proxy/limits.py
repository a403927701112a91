"""Constants of the endpoint as one value (08 §1.2). Made by the assembly, read by every part of the proxy.

Each can be set for the process by a variable of its name: `PADDOCK_CONNECT_TIMEOUT_S` (01 §2.9).

Limits that belong to one model (first token, stall) and the size of a body are manifest fields, not here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

PREFIX = "PADDOCK_"
KIB = 2**10
MIB = 2**20


@dataclass(frozen=True)
class ProxyLimits:
    """Times are seconds, sizes bytes."""

    connect_timeout_s: float = 30.0
    """Longest time to get a connection to an instance."""
    write_timeout_s: float = 10.0
    """Longest time an instance may take nothing of a request that is being sent."""
    look_timeout_s: float = 30.0
    """Longest time for an instance to say how it runs: while it reads a batch of a prompt it says nothing."""
    close_grace_s: float = 1.0
    """A connection that does not close within this time is cut."""
    keepalive_interval_s: float = 15.0
    """A silent stream gets a comment line this often. 0 sends none."""
    client_write_timeout_s: float = 300.0
    """A client that takes nothing, or sends nothing of its body, for this long is gone."""
    max_tokens_fallback: int = 32768
    """`max_tokens` where neither the request nor the instance tells a limit."""
    line_limit_bytes: int = 16 * MIB
    """Longest line and longest event of an instance's stream."""
    error_limit_bytes: int = MIB
    """Most that is read of an instance's error answer."""
    answer_limit_bytes: int = 256 * MIB
    """Most that is kept of one answer: a large batch of embeddings stays well below."""


class LimitError(Exception):
    """A variable that is no limit; the text names it, what was found and what is allowed."""


def read_limits(environ: Mapping[str, str]) -> ProxyLimits:
    """The limits of this process. Raises LimitError."""
    found = {
        field.name: environ.get(PREFIX + field.name.upper(), "").strip() for field in fields(ProxyLimits)
    }
    values: dict[str, Any] = {name: _number(name, text) for name, text in found.items() if text}
    return ProxyLimits(**values)


def _number(name: str, text: str) -> float | int:
    whole = not name.endswith("_s")
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        allowed = "a whole number from 0" if whole else "seconds from 0"
        raise LimitError(f"{PREFIX}{name.upper()}: found {text!r}, must be {allowed}.")
    return value

"""Which of a user's own arguments a build would die of (05 §4.6, 15 §1). Pure; called by granted.

They are named before a process is started, with what this build calls the same setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from framework.engines.renames import instead_of
from framework.values.engine import Capabilities
from framework.values.reason import Reason

FLAG = re.compile(r"--[a-z][a-z0-9-]+|-[a-z][a-z0-9-]*", re.IGNORECASE)
# Less alike than this, a flag is rather of another time than misspelt.
LEAST_ALIKE_SHARE = 0.8


def refused_flag(args: Sequence[str], caps: Capabilities) -> Reason | None:
    """The first argument that this build has removed or never had; None where it may know them all."""
    for flag, value in _flags(args, caps):
        if flag in caps.removed:
            return _removed(flag, value, caps)
        if _is_unknown(flag, caps):
            return _unknown(flag, value, caps)
    return None


def _flags(args: Sequence[str], caps: Capabilities) -> Iterator[tuple[str, str]]:
    """Flags with what stands behind them. The token behind a flag with a value is that value, always."""
    is_value = False
    for place, token in enumerate(args):
        if is_value:
            is_value = False
        elif FLAG.fullmatch(token):
            yield token, args[place + 1] if place + 1 < len(args) else ""
            is_value = token in caps.flags | caps.short_flags and token not in caps.switches


def _is_unknown(flag: str, caps: Capabilities) -> bool:
    if not caps.conclusive or caps.is_partial:
        return False
    if flag.startswith("--"):
        return not caps.has(flag)
    return bool(caps.short_flags) and flag not in caps.short_flags


def _removed(flag: str, value: str, caps: Capabilities) -> Reason:
    hint = caps.removed[flag]
    remedy = f"The engine says: {hint}" if hint else _write_instead(flag, value, caps)
    return Reason(
        "user_flag_rejected",
        f"engine_args holds {flag}, which this engine ({caps.version}) has removed.",
        remedy or "Remove it from engine_args.",
        "error",
        {"flag": flag, "hint": hint, "version": caps.version},
    )


def _unknown(flag: str, value: str, caps: Capabilities) -> Reason:
    remedy = _write_instead(flag, value, caps)
    if not remedy:
        near = get_close_matches(flag, caps.flags, 1, LEAST_ALIKE_SHARE)
        remedy = f"Did you mean {near[0]}?" if near else ""
    return Reason(
        "user_flag_rejected",
        f"engine_args holds {flag}, which this engine ({caps.version}) does not know.",
        remedy or "Remove it, or use an engine that knows it.",
        "error",
        {"flag": flag, "version": caps.version, "instead": list(instead_of(flag, value, caps))},
    )


def _write_instead(flag: str, value: str, caps: Capabilities) -> str:
    spellings = instead_of(flag, value, caps)
    return f"This engine calls it {' or '.join(spellings)}." if spellings else ""

"""Which of a user's own arguments a build would die of (05 §4.6, 15 §1). Pure; called by granted.

They are named before a process is started, with what this build calls the same setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from framework.engines.renames import instead_of
from framework.engines.spec_args import (
    ASSIGNMENT,
    SETTING_MARK,
    TYPE_FLAG,
)
from framework.values.dashes import DASHES
from framework.values.engine import Capabilities
from framework.values.plain_text import brief
from framework.values.reason import Reason

FLAG = re.compile(r"--[a-z][a-z0-9-]+|-[a-z][a-z0-9-]*", re.IGNORECASE)
# In some builds two values stand behind these.
PAIR_FLAGS = frozenset({"--lora-scaled", "--control-vector-scaled", "--control-vector-layer-range"})
LONGEST_SHOWN, MOST_LISTED = 60, 20
# Less alike than this, a flag is rather of another time than misspelt.
LEAST_ALIKE_SHARE = 0.8


def refused_flag(args: Sequence[str], caps: Capabilities) -> Reason | None:
    """The first argument that this build has removed or never had; None where it may know them all."""
    is_certain = caps.conclusive and not caps.is_partial
    for token, value in _flags(args, caps):
        if value is None:
            if is_certain:
                return _stray(token, caps)
        elif token in caps.removed:
            return _removed(token, value, caps)
        elif _is_unknown(token, caps):
            return _unknown(token, value, caps)
        elif is_certain and token == TYPE_FLAG and (kind := _unknown_type(value, caps)):
            return _type_refused(kind, caps)
    return None


def _flags(args: Sequence[str], caps: Capabilities) -> Iterator[tuple[str, str | None]]:
    """Flags with what stands behind them; with None, what is neither a flag nor the value of one.

    The token behind a flag with a value is that value, always.
    """
    is_value = may_be_value = False
    for place, token in enumerate(args):
        if is_value:
            is_value = False
        elif FLAG.fullmatch(token):
            yield token, args[place + 1] if place + 1 < len(args) else ""
            is_known = token in caps.flags | caps.short_flags
            is_value = is_known and token not in caps.switches
            may_be_value = token in PAIR_FLAGS or not is_known
        elif may_be_value:
            may_be_value = False
        elif token.startswith("-") and len(token.split()) == 1:
            may_be_value = True  # a flag of a kind that is not known here, such as one with a dot
        else:
            yield token, None


def _is_unknown(flag: str, caps: Capabilities) -> bool:
    if not caps.conclusive or caps.is_partial:
        return False
    if flag.startswith("--"):
        return not caps.has(flag)
    return bool(caps.short_flags) and flag not in caps.short_flags


def _unknown_type(value: str, caps: Capabilities) -> str:
    """The first type of speculation that the build does not list; empty where there is none."""
    if not caps.spec_types or SETTING_MARK in value or ASSIGNMENT in value:
        return ""
    return next((name for name in value.split(",") if name and name not in caps.spec_types), "")


def _type_refused(kind: str, caps: Capabilities) -> Reason:
    asked = f"{TYPE_FLAG} {brief(kind, LONGEST_SHOWN)}"
    near = get_close_matches(kind.strip().lower(), caps.spec_types, 1, LEAST_ALIKE_SHARE)
    return Reason(
        "user_flag_rejected",
        f"engine_args ask for {asked}, and this engine ({caps.version}) has no such type.",
        f"Did you mean {near[0]}?" if near else f"It has {', '.join(caps.spec_types[:MOST_LISTED])}.",
        "error",
        {"flag": TYPE_FLAG, "value": kind, "version": caps.version},
    )


def _stray(token: str, caps: Capabilities) -> Reason:
    """An engine ends on what belongs to no flag: it is given no arguments without one."""
    words = token.split()
    is_dashed = bool(words) and DASHES.match(words[0]) is not None
    name = DASHES.sub("", words[0], count=1) if is_dashed else ""
    known = caps.flags | caps.short_flags
    flag = next((one for one in (f"--{name}", f"-{name}") if name and one in known), "")
    if is_dashed and len(words) > 1:
        remedy = f"Make {flag or 'the flag'} and its value two texts of engine_args."
        return _not_a_flag(
            f"{brief(words[0], LONGEST_SHOWN)} …", remedy, caps
        )  # what follows may be a secret
    remedy = f"Write it as {flag}." if flag else "Take it out, or write its flag before it."
    return _not_a_flag(brief(token, LONGEST_SHOWN), remedy, caps)


def _not_a_flag(shown: str, remedy: str, caps: Capabilities) -> Reason:
    return Reason(
        "user_flag_rejected",
        f'engine_args holds "{shown}", which is neither a flag of this engine ({caps.version}) nor the value'
        " of one.",
        remedy,
        "error",
        {"flag": shown, "version": caps.version},
    )


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

"""Flags that set one attribute of a group of the core's parameters. Used by the tables about drafting."""

from __future__ import annotations

from typing import Any

from framework.nativeserver.flags.flag import Flag, valued
from framework.nativeserver.flags.values import Value


def knob(flag: str, target: str, value: Value, default: Any, text: str) -> Flag:
    """A flag that llama-server lacks; its variable is its own name (12 §20.1)."""
    variable = flag.removeprefix("--").replace("-", "_").upper()
    return valued(flag, target, value, text, default=str(default), env=variable)

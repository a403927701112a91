"""Work that would hold up the event loop is done beside it (12 §1.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LARGE = 64 * 1024
"""Bytes or characters; less is done at once, since a thread costs more than it saves."""


def is_large(*values: Any) -> bool:
    """Whether the texts, members and entries of JSON values are more than LARGE; looks no further then."""
    waiting, size = list(values), 0
    while waiting and size <= LARGE:
        value = waiting.pop()
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, Mapping):
            size += len(value)
            waiting += value.values()
        elif isinstance(value, list | tuple):
            size += len(value)
            waiting += value
    return size > LARGE


async def off_loop_if(beside: bool, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the work returns or raises; done in a thread when it is to be done beside the event loop."""
    if beside:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)

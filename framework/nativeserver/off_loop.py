"""Work that would hold up the event loop is done beside it (12 §1.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LARGE = 64 * 1024
"""Bytes or characters; less is done at once, since a thread costs more than it saves."""


async def off_loop_if(is_large: bool, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the work returns or raises; done in a thread when it is large."""
    if is_large:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)

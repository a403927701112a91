"""Work that is finished even when its caller is cancelled in the middle (07 §12.6)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end through any number of cancellations, then let the cancellation go on.

    The work itself must be bounded in time.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
        except Exception:  # noqa: BLE001  raised again below, by result()
            break
    if cancelled:
        raise asyncio.CancelledError
    return task.result()

"""The operations of a replica: at most one runs, each command ends the one before it (07 §12).

A command is synchronous: it raises the epoch, cancels what runs and begins its own work as a task, which
first waits until the cancelled one has cleaned up. Called by runtime.replica.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from framework.runtime.shielded import finish

log = logging.getLogger(__name__)

Aim = Literal["up", "down"]
Work = Callable[[], Coroutine[Any, Any, None]]


class Operations:
    """The work of one replica. `changed` is called after each operation ended."""

    def __init__(self, name: Callable[[], str], changed: Callable[[], None]) -> None:
        self.epoch = 0
        self._name = name
        self._changed = changed
        self._aim: Aim = "down"
        self._task: asyncio.Task[None] | None = None
        self._unfinished: set[asyncio.Task[None]] = set()

    def begin(self, aim: Aim, work: Work) -> None:
        """Begin `work`, in place of whatever runs."""
        self.epoch += 1
        self._aim = aim
        earlier = tuple(self._unfinished)
        self._task = asyncio.create_task(self._run(earlier, work))
        self._unfinished.add(self._task)
        self._task.add_done_callback(self._unfinished.discard)
        for task in earlier:
            task.cancel()

    def afterwards(self, begin: Callable[[], None]) -> None:
        """Have the running operation begin another one, unless a command comes first. Not at once: that one
        waits for the running one, which would wait for itself."""
        epoch = self.epoch

        def unless_overtaken() -> None:
            if epoch == self.epoch:
                begin()

        asyncio.get_running_loop().call_soon(unless_overtaken)

    @property
    def busy(self) -> bool:
        """Whether an operation runs."""
        return self._task is not None and not self._task.done()

    def busy_with(self, aim: Aim) -> bool:
        """Whether an operation runs that brings something up, or down."""
        return self.busy and self._aim == aim

    async def settled(self) -> None:
        """Wait until no operation runs."""
        while self._unfinished:
            await asyncio.wait(self._unfinished)

    async def _run(self, earlier: tuple[asyncio.Task[None], ...], work: Work) -> None:
        try:
            if earlier:
                await finish(_ended(earlier))
            await work()
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("%s: operation failed", self._name())
        finally:
            asyncio.get_running_loop().call_soon(self._changed)


async def _ended(tasks: tuple[asyncio.Task[None], ...]) -> None:
    await asyncio.wait(tasks)

"""Stopping a request from outside: the client left, a cancel, a stop of its instance (08 §4).

One scope per request. `interrupt` may be called by any callback or task of the same loop; the work inside
the scope is cancelled at the await it stands at, cleans up in its `finally` blocks, and the scope turns that
cancel into `Interrupted`. A cancel that comes from elsewhere (the server ends) passes through untouched.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Literal

from framework.runtime.lease import RevokeCode

Cause = Literal["client_gone", "cancelled"] | RevokeCode


class Interrupted(Exception):
    """The work inside a scope was stopped; `cause` is the first one given."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause)
        self.cause: Cause = cause


class InterruptScope:
    """A block of one task that `interrupt` can end. Entered once."""

    def __init__(self) -> None:
        self.cause: Cause | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0

    def interrupt(self, cause: Cause) -> None:
        """End the work in the scope. The first cause wins; outside the block only the mark is set."""
        if self.cause is not None:
            return
        self.cause = cause
        if self._task is not None:
            self._task.cancel()

    def __enter__(self) -> InterruptScope:
        if self.cause is not None:
            raise Interrupted(self.cause)
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("an interrupt scope needs a running task")
        self._task, self._cancelling = task, task.cancelling()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if self.cause is None or task is None:
            return
        cancelled_from_outside = task.uncancel() > self._cancelling
        if cancelled_from_outside:
            return
        # Whatever was raised once the mark was set (also "closed" errors of a library) is only its echo.
        if isinstance(error, asyncio.CancelledError | Exception):
            raise Interrupted(self.cause) from error

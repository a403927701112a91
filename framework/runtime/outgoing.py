"""Instances that were replaced while they served, until their last answers are given (07 §4.3, §4.5).

Their successor serves already, so no operation of the replica waits for them, and none cuts them short.
Called by runtime.replica, one for each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from framework.runtime.ending import Ending, Stop
from framework.runtime.instance import Instance
from framework.values.instance import State

log = logging.getLogger(__name__)


class Outgoing:
    """What leaves. Belongs to one event loop."""

    def __init__(self, ending: Ending, changed: Callable[[], None]) -> None:
        self._ending = ending
        self._changed = changed
        self._leaving: dict[Instance, asyncio.Task[None]] = {}

    @property
    def instances(self) -> tuple[Instance, ...]:
        """Those that have not gone yet, the oldest first."""
        return tuple(self._leaving)

    def begin(self, instance: Instance, cause: str) -> None:
        """Let it finish what it answers, within its drain limit, then end it. Its slots are the business of
        its successor."""
        instance.move(State.DRAINING, cause)
        stop = Stop("drain", "instance_replaced", cause, keeps_slots=False)
        task = asyncio.create_task(self._ending.retire(instance, stop), name=f"end of {instance.name}")
        self._leaving[instance] = task
        task.add_done_callback(lambda _: self._gone(instance, task))

    def hurry(self, stop: Stop) -> None:
        """Everything is to end: what a `stop` that does not wait means for those that leave anyway."""
        if stop.mode == "drain":
            return
        for instance in self._leaving:
            instance.revoke(stop.code)
            if stop.mode == "kill" and instance.running is not None:
                instance.running.child.signal_kill()

    def _gone(self, instance: Instance, task: asyncio.Task[None]) -> None:
        del self._leaving[instance]
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("%s: its end failed", instance.name, exc_info=fault)
        self._changed()

    async def settled(self) -> None:
        """Wait until all of them have gone."""
        if self._leaving:
            await asyncio.wait(self._leaving.values())

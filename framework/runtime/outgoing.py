"""Instances that were replaced while they served, until their last answers are given (07 §4.3, §4.5).

Their successor serves already, so no operation of the replica waits for them, and none cuts them short.
Called by runtime.replica, one for each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

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
        self._retire(instance, Stop("drain", "instance_replaced", cause, keeps_slots=False))

    def hurry(self, stop: Stop) -> None:
        """Everything is to end: what a `stop` that does not wait means for those that leave anyway."""
        if stop.mode == "drain":
            return
        for instance in self.instances:
            self._retire(instance, replace(stop, keeps_slots=False, leaves=False))

    def _retire(self, instance: Instance, stop: Stop) -> None:
        """In place of whatever ends it already."""
        earlier = self._leaving.get(instance)

        async def retire() -> None:
            if earlier is not None:
                earlier.cancel()
                await asyncio.wait({earlier})
            if instance.state is not State.STOPPED:
                await self._ending.retire(instance, stop)

        task = asyncio.create_task(retire(), name=f"end of {instance.name}")
        self._leaving[instance] = task
        task.add_done_callback(lambda _: self._gone(instance, task))

    def _gone(self, instance: Instance, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("%s: its end failed", instance.name, exc_info=fault)
        if self._leaving.get(instance) is task:
            del self._leaving[instance]
            self._changed()

    async def settled(self) -> None:
        """Wait until all of them have gone."""
        if self._leaving:
            await asyncio.wait(self._leaving.values())

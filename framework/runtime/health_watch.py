"""Probe every ready engine, pass over one that is silent, end one that hangs (07 §9, §10; PL-03).

One task for each process that serves or drains, for as long as it does. Only time in which a probe really
ran counts: while this process was held up or had no file left, or the machine slept, nothing was seen of the
engine. What follows an end is what follows a crash. Called by runtime.fleet.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from framework.runtime.instance import Instance
from framework.runtime.logs import LogBuffer
from framework.runtime.process_work import Work, read_work
from framework.runtime.remote_devices import endpoints
from framework.runtime.shop import Shop
from framework.runtime.silence import Silence, engine_hung, engine_silent
from framework.runtime.stall import Stall
from framework.values.instance import State
from framework.values.reason import Reason

log = logging.getLogger(__name__)

# How soon a process that began to serve is watched.
LOOK_S = 1.0
# A timer that fires this much later than asked says that we were held up ourselves.
HELD_UP_S = 2.0
# An abort or a lost device prints a backtrace behind the line that tells the cause.
LINES = 400
WATCHED = frozenset({State.READY, State.DRAINING})


class HealthWatch:
    """Watches what `served` gives: each instance with the log of its replica."""

    def __init__(self, served: Callable[[], Iterable[tuple[Instance, LogBuffer]]], shop: Shop) -> None:
        self._served = served
        self._shop = shop
        self._watches: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            while True:
                for instance, lines in self._served():
                    if instance.name not in self._watches and _is_watched(instance):
                        watch = asyncio.create_task(
                            self._watch(instance, lines), name=f"health {instance.name}"
                        )
                        self._watches[instance.name] = watch
                self._watches = {name: task for name, task in self._watches.items() if not task.done()}
                await asyncio.sleep(LOOK_S)
        finally:
            for task in self._watches.values():
                task.cancel()
            await asyncio.gather(*self._watches.values(), return_exceptions=True)

    async def _watch(self, instance: Instance, lines: LogBuffer) -> None:
        try:
            reason = await self._wait_for_trouble(instance, lines)
        except Exception:
            # The next turn of `run` begins again.
            log.exception("%s: watching its health failed", instance.name)
            return
        if reason is not None and _is_watched(instance):
            if instance.state is State.DRAINING:
                # Nobody tells the end of a process that is to end anyway.
                self._say(instance, reason)
            instance.end_for(reason)

    async def _wait_for_trouble(self, instance: Instance, lines: LogBuffer) -> Reason | None:
        """Why the process should be ended; None when it serves no longer."""
        limits = self._shop.health
        looked_s = time.monotonic()
        await asyncio.sleep(limits.every_s)
        # Only now: by then what a process said in an earlier life of ours has been read.
        stall = Stall(limits, newest=lines.ready_at)
        while True:
            if not _is_watched(instance):
                return None
            answered = await self._answers(instance, limits.quick_s)
            if answered is None:
                reason = None
            elif not answered:
                reason = await self._listen(instance)
                stall = Stall(limits, newest=lines.newest)
            else:
                seconds = time.monotonic() - looked_s
                reason = await self._look_for_stall(instance, lines, stall, seconds)
            if reason is not None:
                return reason
            looked_s = time.monotonic()
            await asyncio.sleep(limits.every_s)

    async def _listen(self, instance: Instance) -> Reason | None:
        """It left one probe without an answer: wait for its next one, or for the verdict."""
        limits, silence = self._shop.health, Silence(self._shop.health)
        instance.silent = engine_silent(limits.quick_s, limits)
        self._shop.events.touch()
        try:
            before, began_s = await self._work(instance), time.monotonic()
            while _is_watched(instance):
                answered = await self._answers(instance, limits.patient_s)
                if answered:
                    self._say_again(instance, silence)
                    return None
                seconds = time.monotonic() - began_s
                work = await self._work(instance)
                if answered is not None and seconds <= limits.pause_s + limits.patient_s + HELD_UP_S:
                    worked = work is None or work.goes_on(before, seconds)
                    silence.missed(seconds, worked=worked, crowded=_is_crowded(instance))
                    self._show(instance, silence)
                if silence.is_over:
                    return engine_hung(silence, is_stopped=work is not None and work.is_stopped)
                before, began_s = work, time.monotonic()
                await asyncio.sleep(limits.pause_s)
        finally:
            instance.silent = None
            self._shop.events.touch()
        return None

    async def _look_for_stall(
        self, instance: Instance, lines: LogBuffer, stall: Stall, seconds: float
    ) -> Reason | None:
        if not stall.stands(instance, lines.newest):
            return None
        work = await self._work(instance)
        if seconds <= self._shop.health.every_s + self._shop.health.quick_s + HELD_UP_S:
            is_remote = instance.plan is not None and bool(endpoints(instance.plan))
            stall.stood(seconds, work, is_remote=is_remote)
        return stall.verdict(instance, lines.last(LINES))

    async def _answers(self, instance: Instance, timeout_s: float) -> bool | None:
        running = instance.running
        return await self._shop.client.answers(running.port, timeout_s) if running is not None else None

    async def _work(self, instance: Instance) -> Work | None:
        running = instance.running
        return await asyncio.to_thread(read_work, running.child.pid) if running is not None else None

    def _show(self, instance: Instance, silence: Silence) -> None:
        limits = self._shop.health
        instance.silent = reason = engine_silent(limits.quick_s + silence.total_s, limits)
        if silence.probes == 1:
            self._say(instance, reason)
        self._shop.events.touch()

    def _say_again(self, instance: Instance, silence: Silence) -> None:
        """It was said that it is silent, so it is said that it is not."""
        if silence.probes:
            self._shop.events.record(
                "health",
                f"answers health checks again after {silence.total_s:.0f} s",
                model=instance.request.id,
                replica=instance.replica,
                data={"instance": instance.name, "silent_s": round(silence.total_s, 1)},
            )

    def _say(self, instance: Instance, reason: Reason) -> None:
        self._shop.events.record(
            "health", reason.message, model=instance.request.id, replica=instance.replica, reason=reason
        )


def _is_watched(instance: Instance) -> bool:
    return instance.state in WATCHED and instance.process_alive


def _is_crowded(instance: Instance) -> bool:
    """Whether its requests may hold all threads that answer."""
    slots = instance.result.slots if instance.result is not None else 0
    return len(instance.leases) > max(1, slots)

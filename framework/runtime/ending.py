"""End an instance: let its requests finish, end its process, give back what it held (07 §5).

Called by runtime.replica. Every step is bounded in time; clean-up runs whatever happens to the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from framework.runtime import launch, slot_saving
from framework.runtime.instance import Instance
from framework.runtime.launch import Site
from framework.runtime.lease import RevokeCode
from framework.runtime.process import KILL_WAIT_S, TERMINATE_WAIT_S
from framework.runtime.shielded import finish
from framework.runtime.shop import Shop
from framework.runtime.slot_saving import Patience, is_continued
from framework.runtime.voice import Voice
from framework.values.action import StopMode
from framework.values.instance import SERVING, ExitInfo, State
from framework.values.pool import Applicant

# A holder of a revoked lease closes its upstream connection within 0.2 s (08 §4.2); more is a hung client.
REVOKE_GRACE_S = 2.0
# Of the time for everything, what is left when slots are saved: for cutting off requests, and for signals.
END_S = REVOKE_GRACE_S + TERMINATE_WAIT_S + KILL_WAIT_S


@dataclass(frozen=True)
class Stop:
    """How to stop: the mode, what holders of leases are told, why."""

    mode: StopMode
    code: RevokeCode
    cause: str
    is_patient: bool = False
    """Whether a drain waits for answers as long as they take: who makes room for another cuts nobody off."""
    keeps_slots: bool = True
    """Whether what its slots hold is saved: something may come that can go on with it."""
    leaves: bool = False
    """Whether what can be left to the next manager stays: the end of this one, with `on_exit = "keep"`."""


class Ending:
    """Ends instances of one replica."""

    def __init__(
        self,
        voice: Voice,
        site: Callable[[Instance], Site],
        shop: Shop,
        asks: Callable[[], Applicant],
        changed: Callable[[], None],
    ) -> None:
        self._voice = voice
        self._site = site
        self._shop = shop
        self._ledger = shop.ledger
        self._asks = asks
        self._changed = changed

    async def stop(self, instance: Instance, stop: Stop) -> None:
        """End whatever there is of an instance: its process, or what a start that came to nothing left."""
        if stop.leaves and instance.may_stay:
            await self.leave(instance, stop)
        elif instance.process_alive:
            await self.retire(instance, stop)
        elif instance.state in SERVING:
            await self.end(instance, stop)
        else:
            await finish(self.bury(instance))
            instance.move(State.STOPPED, stop.cause)

    async def retire(self, instance: Instance, stop: Stop, successor: Instance | None = None) -> None:
        """Drain and save its slots as the mode says, then end the process (07 §5.2). `successor` is the one
        that takes its place, where that is planned already."""
        if stop.mode == "drain":
            if instance.state is State.READY:
                instance.move(State.DRAINING, stop.cause)
                self._changed()
            await self._drain(instance, stop)
        else:
            # From here on an exit is no crash and no request is let in.
            if instance.state in (State.READY, State.DRAINING):
                instance.move(State.STOPPING, stop.cause)
                self._changed()
            if instance.revoke(stop.code):
                # 15 §8: SIGTERM waits for ever while a request is open, so upstream connections go first.
                await instance.wait_idle(REVOKE_GRACE_S)
        has_heir = stop.keeps_slots and (successor is None or is_continued(instance, successor))
        if has_heir and stop.mode != "kill":
            await slot_saving.save(self._site(instance), instance, self._voice, self._patience(stop))
        await self.end(instance, stop)

    def _patience(self, stop: Stop) -> Patience:
        """How long saving may take: at the end of everything, while the process can still end by itself."""
        until_s = None
        if stop.code == "shutting_down":
            until_s = time.monotonic() + self._shop.server.shutdown_s - END_S

        def waits() -> bool:
            """A request for the model itself or, where it makes room, for any other."""
            return self._asks().waiting > 0 or (stop.is_patient and self._shop.waiting > 0)

        return Patience(waits, until_s)

    async def end(self, instance: Instance, stop: Stop) -> None:
        """End the process and clean up, to the end, whatever happens to the caller."""
        await finish(self._end(instance, stop))

    async def leave(self, instance: Instance, stop: Stop) -> None:
        """Tell its clients, then let go of the process, which goes on (07 §5.5)."""
        # From here on no request is let in, and an exit is the business of the next manager.
        instance.move(State.STOPPING, stop.cause)
        self._changed()
        if instance.revoke(stop.code):
            await instance.wait_idle(REVOKE_GRACE_S)
        if instance.running is None or not instance.process_alive:
            await self.end(instance, stop)
            return
        running, instance.running = instance.running, None
        self._voice.left(instance.name, running.child.pid)
        await launch.leave(self._site(instance), running)
        instance.move(State.STOPPED, "its process goes on without this manager")

    async def bury(self, instance: Instance) -> None:
        """Give back what a process that ended by itself held: its group, pipe, port, directory."""
        if instance.running is not None:
            ended = await launch.stop(self._site(instance), instance.running, kill=True)
            if ended.survivors:
                self._outlived(instance, ended.survivors)
            instance.running = None
        await self.clean(instance)

    async def clean(self, instance: Instance) -> None:
        """Give back its memory and remove its run directory."""
        self._ledger.release(instance)
        await self._site(instance).clean()

    def _outlived(self, instance: Instance, pids: tuple[int, ...]) -> None:
        self._ledger.outlived(instance, pids)
        self._voice.unkillable(instance.name, pids)

    async def _drain(self, instance: Instance, stop: Stop) -> None:
        began, inflight, cancelled = time.monotonic(), len(instance.leases), 0
        limit_s = None if stop.is_patient else instance.request.live.drain_timeout_s
        if not await instance.wait_idle(limit_s):
            cancelled = instance.revoke(stop.code)
            await instance.wait_idle(REVOKE_GRACE_S)
        if inflight:
            self._voice.drained(instance.name, inflight, time.monotonic() - began, cancelled)

    async def _end(self, instance: Instance, stop: Stop) -> None:
        began, running = time.monotonic(), instance.running
        ready_s = instance.seconds_ready
        if instance.state in (State.READY, State.DRAINING):
            instance.move(State.STOPPING, stop.cause)
            self._changed()
        if running is not None:
            ended = await launch.stop(self._site(instance), running, kill=stop.mode == "kill")
            code = running.child.exited.result() if running.child.exited.done() else None
            instance.last_exit = ExitInfo(code, hard=False, planned=True, seconds_ready=ready_s)
            instance.running = None
            seconds = time.monotonic() - began
            self._voice.stopped(instance.name, stop.cause, stop.mode, code, seconds, ended.signals)
            if ended.survivors:
                self._outlived(instance, ended.survivors)
        await self.clean(instance)
        if instance.state is not State.STOPPED:
            instance.move(State.STOPPED, stop.cause)
        self._changed()

"""What engines really hold, looked at now and then: for pages, and against what was planned (FM-21).

One task of the fleet. A process that holds clearly more than its plan for a while is told once, as drift; it
is not touched for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from framework.hardware.nvml import NvidiaCard
from framework.planning.memory_drift import MEMORY_OVER_PLAN, memory_over_plan, over_plan, planned_bytes
from framework.runtime.instance import Instance
from framework.runtime.process_memory import Held, Look, look
from framework.runtime.shop import Shop
from framework.values.device import HOST_NAME, Device

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MemoryLimits:
    """How often is looked, and how long something has to stay so until it is told. Seconds."""

    every_s: float = 10.0
    stays_s: float = 30.0


DEFAULT_LIMITS = MemoryLimits()


class MemoryWatch:
    """Watches all instances with a process. Belongs to one event loop."""

    def __init__(
        self,
        instances: Callable[[], Iterable[Instance]],
        shop: Shop,
        *,
        limits: MemoryLimits = DEFAULT_LIMITS,
        take: Callable[[Iterable[int]], Look] = look,
    ) -> None:
        self._instances = instances
        self._shop = shop
        self._limits = limits
        self._take = take
        self._held: dict[str, Mapping[str, int]] = {}
        self._cards: Mapping[str, NvidiaCard] = {}
        self._over_since_s: dict[str, float] = {}

    @property
    def held_bytes(self) -> Mapping[str, Mapping[str, int]]:
        """By instance and device, as of the last look; what was not seen is missing."""
        return self._held

    def as_now(self, devices: Sequence[Device]) -> tuple[Device, ...]:
        """Listed devices with what their driver said at the last look."""
        return tuple(_with_card(device, self._cards.get(device.uuid)) for device in devices)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.look()
            except Exception:
                log.exception("looking at the memory of engines failed")
            await asyncio.sleep(self._limits.every_s)

    async def look(self) -> None:
        """One look, and what follows from it."""
        leaders = {i.running.child.pid: i for i in self._instances() if i.running is not None}
        seen = await asyncio.to_thread(self._take, tuple(leaders))
        self._cards = seen.cards
        devices = self.as_now(self._shop.listed())
        by_uuid = {device.uuid: device.name for device in devices if device.uuid}
        before, self._held = self._held, {}
        for pid, instance in leaders.items():
            if (held := seen.held.get(pid)) is not None and instance.process_alive:
                self._held[instance.name] = _by_device(held, by_uuid)
        for name in self._over_since_s.keys() - self._held.keys():
            del self._over_since_s[name]
        for instance in leaders.values():
            self._judge(instance, devices)
        if self._held != before:
            self._shop.events.touch()

    def _judge(self, instance: Instance, devices: Sequence[Device]) -> None:
        held, plan, result = self._held.get(instance.name), instance.plan, instance.result
        if held is None or plan is None or result is None or not instance.serving:
            return
        if any(reason.code == MEMORY_OVER_PLAN for reason in result.degradations):
            return
        planned = planned_bytes(plan, devices)
        over, now = over_plan(held, planned), self._shop.ledger.clock()
        if not over:
            self._over_since_s.pop(instance.name, None)
            return
        if now - self._over_since_s.setdefault(instance.name, now) < self._limits.stays_s:
            return
        reason = memory_over_plan(instance.request.id, held, planned, over)
        instance.result = replace(result, degradations=(*result.degradations, reason))
        self._shop.events.record(
            "drift",
            reason.message,
            model=instance.request.id,
            replica=instance.replica,
            reason=reason,
            data={"instance": instance.name, "code": reason.code, "detail": dict(reason.evidence)},
        )


def _by_device(held: Held, names: Mapping[str, str]) -> dict[str, int]:
    host = {} if held.host_bytes is None else {HOST_NAME: held.host_bytes}
    return host | {names[uuid]: size for uuid, size in held.card_bytes.items() if uuid in names}


def _with_card(device: Device, card: NvidiaCard | None) -> Device:
    if card is None or card.free_bytes is None:
        return device
    return replace(
        device,
        free_bytes=min(card.free_bytes, device.total_bytes),
        utilisation=card.utilisation,
        used_by_pid=card.used_by_pid,
    )

"""The engines' own metrics, asked for when somebody scrapes, with the age of what could not be had in time.

Looking must not touch (cases MD-01): nothing is loaded, no engine that sleeps is woken, and no lease is
taken, so that idle times run on. llama-server answers between two batches only (15 §5), which may take
seconds: a scrape waits a moment and takes what was last said; the answer that comes later is there for the
next one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from framework.runtime.engine_client import EngineClient
from framework.runtime.foreign_metrics import ForeignMetrics, read_metrics
from framework.runtime.instance import Instance

# A scrape is to be through within 200 ms (MD-01), and has its own work besides.
PATIENCE_S = 0.1
# Longer than the longest batch that was seen.
ANSWER_TIMEOUT_S = 30.0
STALE_S = 15.0
# What is older than this says nothing about now; Prometheus, too, looks back for five minutes.
FORGOTTEN_S = 300.0
# Such an engine sleeps by itself, and is woken by the question (15 §6).
SLEEPS = "--sleep-idle-seconds"


@dataclass(frozen=True)
class EngineSample:
    """What an engine said last. `age_s` is None while it has said nothing."""

    model: str
    replica: int
    age_s: float | None
    metrics: ForeignMetrics = field(default_factory=ForeignMetrics)

    @property
    def is_stale(self) -> bool:
        """Whether it is too old to be called now."""
        return self.age_s is None or self.age_s > STALE_S


class EngineMetrics:
    """Asks ready engines, each at most once at a time. Belongs to one event loop."""

    def __init__(
        self,
        instances: Callable[[], Iterable[Instance]],
        client: EngineClient,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._instances = instances
        self._client = client
        self._clock = clock
        self._said: dict[str, tuple[float, ForeignMetrics]] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}

    async def collect(self) -> tuple[EngineSample, ...]:
        """What every ready engine says, or has said."""
        asked = {one.name: one for one in self._instances() if one.serving and not _sleeps(one)}
        self._forget(asked)
        for name, instance in asked.items():
            if name not in self._under_way or self._under_way[name].done():
                self._under_way[name] = asyncio.create_task(self._ask(instance))
        waited = [self._under_way[name] for name in asked]
        if waited:
            await asyncio.wait(waited, timeout=PATIENCE_S)
        return tuple(self._sample(instance) for instance in asked.values())

    async def close(self) -> None:
        """Stop asking."""
        tasks = tuple(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, instance: Instance) -> None:
        running = instance.running
        if running is None:
            return
        raw = await self._client.metrics(running.port, running.key, ANSWER_TIMEOUT_S)
        if raw is not None and instance.process_alive:
            self._said[instance.name] = (self._clock(), await asyncio.to_thread(read_metrics, raw))

    def _sample(self, instance: Instance) -> EngineSample:
        model, replica = instance.request.id, instance.replica
        if instance.name not in self._said:
            return EngineSample(model, replica, None)
        at, metrics = self._said[instance.name]
        return EngineSample(model, replica, max(0.0, self._clock() - at), metrics)

    def _forget(self, asked: Iterable[str]) -> None:
        known, now = set(asked), self._clock()
        for name in self._under_way.keys() - known:
            self._under_way.pop(name).cancel()
        self._said = {
            name: said for name, said in self._said.items() if name in known and now - said[0] <= FORGOTTEN_S
        }


def _sleeps(instance: Instance) -> bool:
    plan = instance.plan
    return plan is not None and any(token.partition("=")[0] == SLEEPS for token in plan.argv)

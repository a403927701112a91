"""The last hour of each model and device, in memory: for charts and `/history` (01 §3).

Fed with every finished request on the event loop, and a few times a minute with snapshots that exist anyway:
no engine is asked anything for it (cases MD-01). Names come from the manifest; how many there are is bounded
all the same. Readers get values that change at most with every look, so that pages are not drawn more often.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TypeVar

from framework.telemetry.events import utc_now
from framework.telemetry.step import OpenStep
from framework.values.history import STEP_S, STEPS, DeviceHistory, DeviceStep, ModelHistory, ModelStep
from framework.values.instance import ModelView
from framework.values.pool import PoolView
from framework.values.request_record import RequestRecord

T = TypeVar("T")
MOST_MODELS = 500
MOST_DEVICES = 64
Steps = dict[int, T]
"""Steps by their number, oldest first."""


class History:
    """All methods are called on one event loop. `clock` counts seconds and never jumps."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._clock = clock
        self._now = now
        # Steps begin with the minutes of the wall clock as it was at first: one that jumps moves labels only.
        self._origin_s = clock() - now().timestamp() % STEP_S
        self._known_from = 0
        self._models: dict[str, Steps[OpenStep]] = {}
        self._devices: dict[str, Steps[tuple[int, int]]] = {}
        self._totals: dict[str, int] = {}
        self._moved = False
        self._looked_at = -1
        self._shown: dict[str, ModelHistory] = {}
        self._shown_devices: tuple[DeviceHistory, ...] | None = None

    def request_ended(self, record: RequestRecord, *, ago_s: float = 0.0) -> None:
        """Count in a request that ended so long ago; those of no model, and older ones, are nobody's."""
        number = self._number(ago_s)
        if record.model is None or number <= self._newest - STEPS:
            return
        step = self._step(record.model, number)
        if step is not None:
            step.request_ended(record)
            self._moved = True

    def known_for(self, ago_s: float) -> None:
        """What was told is complete for so long back: earlier lives are counted in."""
        self._known_from = min(self._known_from, self._number(ago_s))

    def looked(self, views: Iterable[ModelView], pools: Iterable[PoolView]) -> bool:
        """Take snapshots in; whether readers see something else from here on."""
        newest = self._newest
        moved = self._moved or newest != self._looked_at
        for view in views:
            if view.instances or view.queue.waiting:
                step = self._step(view.request.id, newest)
                moved = (step is not None and step.saw(view)) or moved
        for pool in pools:
            for use in pool.devices:
                taken = (use.total_bytes - use.free_bytes, use.planned_bytes + use.promised_bytes)
                moved = self._device(use.name, use.total_bytes, newest, taken) or moved
        if moved:
            self._forget(newest)
            self._shown.clear()
            self._shown_devices = None
        self._moved, self._looked_at = False, newest
        return moved

    def model(self, name: str) -> ModelHistory:
        """The last hour of a model, as of the last look; of one that did nothing it says so."""
        if name not in self._shown:
            self._shown[name] = self.model_now(name)
            while len(self._shown) > MOST_MODELS:
                self._shown.pop(next(iter(self._shown)))
        return self._shown[name]

    def model_now(self, name: str) -> ModelHistory:
        """The last hour of a model up to now."""
        steps = self._models.get(name, {})
        times = self._times()
        return ModelHistory(
            name,
            tuple(
                step.closed(at) if (step := steps.get(number)) is not None else ModelStep(at)
                for number, at in times
            ),
        )

    def devices(self) -> tuple[DeviceHistory, ...]:
        """The last hour of every device of a pool, as of the last look."""
        if self._shown_devices is None:
            times = self._times()
            self._shown_devices = tuple(
                DeviceHistory(
                    name,
                    self._totals[name],
                    tuple(DeviceStep(at, *steps.get(number, (None, None))) for number, at in times),
                )
                for name, steps in self._devices.items()
            )
        return self._shown_devices

    @property
    def _newest(self) -> int:
        return self._number(0.0)

    def _number(self, ago_s: float) -> int:
        return int((self._clock() - max(0.0, ago_s) - self._origin_s) // STEP_S)

    def _times(self) -> tuple[tuple[int, datetime], ...]:
        """Numbers and beginnings of the steps that are known, oldest first."""
        newest, now = self._newest, self._now().timestamp()
        began = datetime.fromtimestamp(now - now % STEP_S, tz=self._now().tzinfo)
        first = max(self._known_from, newest - STEPS + 1)
        return tuple((n, began - timedelta(seconds=STEP_S * (newest - n))) for n in range(first, newest + 1))

    def _step(self, model: str, number: int) -> OpenStep | None:
        """The step of a model to count into; None where there is no room for another model."""
        steps = self._models.get(model)
        if steps is None:
            if len(self._models) >= MOST_MODELS:
                return None
            steps = self._models[model] = {}
        return steps.setdefault(number, OpenStep())

    def _device(self, name: str, total_bytes: int, number: int, taken: tuple[int, int]) -> bool:
        if name not in self._devices and len(self._devices) >= MOST_DEVICES:
            return False
        steps = self._devices.setdefault(name, {})
        before = steps.get(number)
        used, planned = taken if before is None else (max(taken[0], before[0]), max(taken[1], before[1]))
        steps[number], self._totals[name] = (used, planned), total_bytes
        return steps[number] != before

    def _forget(self, newest: int) -> None:
        """What is older than an hour."""
        _drop_old(self._models, newest - STEPS)
        _drop_old(self._devices, newest - STEPS)
        self._totals = {name: self._totals[name] for name in self._devices}


def _drop_old(kept: dict[str, Steps[T]], last: int) -> None:
    """Take out the steps up to `last`, and what has none then."""
    for name, steps in list(kept.items()):
        for number in [n for n in steps if n <= last]:
            steps.pop(number)
        if not steps:
            kept.pop(name)

"""Last hours to draw: one with everything in it, one in which nothing happened, and what pools did."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from framework.dashboard.charts.timeline import Timeline, timeline
from framework.dashboard.pages.history import X_TICKS, devices_section
from framework.dashboard.pages.pools_past import PoolsPast
from framework.values.event import Event
from framework.values.history import STEP_S, STEPS, DeviceHistory, DeviceStep, ModelHistory, ModelStep
from framework.values.pool import DeviceUse
from tests.dashboard import samples

BEGIN = samples.NOW.replace(second=0) - timedelta(seconds=STEP_S * (STEPS - 1))
END = BEGIN + timedelta(seconds=STEP_S * STEPS)


def busy(model: str, steps: int = 40) -> ModelHistory:
    """A model that was asked in bursts."""
    return ModelHistory(model, tuple(_step(place) for place in range(STEPS - steps, STEPS)))


def idle(model: str) -> ModelHistory:
    """A model that nobody asked."""
    return ModelHistory(model, tuple(ModelStep(BEGIN + timedelta(seconds=STEP_S * n)) for n in range(STEPS)))


def devices(uses: Iterable[DeviceUse]) -> tuple[DeviceHistory, ...]:
    """Devices that fill up."""
    return tuple(
        DeviceHistory(
            use.name,
            use.total_bytes,
            tuple(
                DeviceStep(_at(n), use.total_bytes * n // STEPS, use.total_bytes * n // (2 * STEPS))
                if n % 7
                else DeviceStep(_at(n))
                for n in range(STEPS)
            ),
        )
        for use in uses
    )


def moments(model: str = "smollm2") -> list[Event]:
    """A model that was loaded, made room, failed once and came back."""
    facts = [
        ("ready", 5, {"instance": f"{model}.0@1", "seconds": 40.0}),
        ("evicted", 20, {"instance": f"{model}.0@1"}),
        ("stopped", 21, {"instance": f"{model}.0@1"}),
        ("start_failed", 30, {}),
        ("ready", 45, {"instance": f"{model}.0@2", "seconds": 90}),
        ("exited", 50, {"instance": f"{model}.0@2"}),
        ("state", 51, {}),
    ]
    return [
        samples.event(number, kind, model=model, data=data, at=BEGIN + timedelta(minutes=minute))
        for number, (kind, minute, data) in enumerate(facts, 1)
    ]


def pools_past(uses: Iterable[DeviceUse], *events: Event) -> PoolsPast:
    """The past of pools with these devices."""
    known = {use.name: use for use in uses}
    running = {"chat": frozenset({"chat.0@1"})} if known else {}
    happened = list(events) or (moments() if known else [])
    drawn = timeline("timeline", happened, running, BEGIN, END, X_TICKS)
    return PoolsPast(devices_section(devices(known.values())), drawn)


def loaded(model: str) -> Timeline:
    """The past of one model."""
    return timeline("timeline", moments(model), {}, BEGIN, END, X_TICKS)


def _at(place: int) -> datetime:
    return BEGIN + timedelta(seconds=STEP_S * place)


def _step(place: int) -> ModelStep:
    at = BEGIN + timedelta(seconds=STEP_S * place)
    if place % 9 == 4:
        return ModelStep(at)
    first = 0.04 + (place % 5) * 0.03
    return ModelStep(
        at=at,
        answered=2 + place % 6,
        left=place % 11 == 0,
        refused=place % 7 == 0,
        failed=place % 13 == 0,
        first_token_p50_s=first,
        first_token_p95_s=first * 4,
        queue_p95_s=0.01,
        generation_tokens_per_s=38.0 + place % 7,
        prompt_tokens_per_s=812.5,
        prompt_tokens=900,
        generated_tokens=400,
        drafted=200,
        accepted=110 + place % 40,
        busy_slots=1 + place % 4,
        slots=4,
        waiting=place % 3,
        depth=2.5 + place % 3,
    )

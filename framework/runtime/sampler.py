"""Look at the slots of ready engines while they work (13 §5). Looking never touches: no load, no wake-up.

One task for the fleet. Engines that are idle and were seen idle are not asked again; an engine that is in
the middle of a batch answers late (15 §5), which makes its sample old, and the age is shown.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from framework.runtime.engine_client import EngineClient
from framework.runtime.instance import Instance
from framework.telemetry.changes import Changes
from framework.values.instance import Slot

log = logging.getLogger(__name__)

# Four updates a second is what a page shows at most (01 §3); half of that keeps engines undisturbed.
PERIOD_S = 0.5
WORD = re.compile(r"[a-z0-9-]{1,40}")
# No drafting is a hundred times as fast; an engine that says so has not measured yet.
MOST_GAIN = 99.0
NOT_ASKED = "none-requested"


@dataclass(frozen=True)
class Counts:
    """Tokens of one slot at one moment, to take differences of."""

    at_s: float
    task: int | None
    prompt_done: int
    generated: int


class Sampler:
    """Keeps `slots` and the two rates of busy instances fresh."""

    def __init__(
        self, instances: Callable[[], Iterable[Instance]], client: EngineClient, changes: Changes
    ) -> None:
        self._instances = instances
        self._client = client
        self._changes = changes
        self._counts: dict[tuple[str, int], Counts] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Sample until cancelled."""
        try:
            while True:
                self._look()
                await asyncio.sleep(PERIOD_S)
        finally:
            for task in self._under_way.values():
                task.cancel()

    def _look(self) -> None:
        ready = {i.name: i for i in self._instances() if i.serving or (i.process_alive and i.leases)}
        for name in self._under_way.keys() - ready.keys():
            self._under_way.pop(name).cancel()
        self._counts = {key: value for key, value in self._counts.items() if key[0] in ready}
        for name, instance in ready.items():
            task = self._under_way.get(name)
            if (task is None or task.done()) and _worth_a_look(instance):
                self._under_way[name] = asyncio.create_task(self._sample(instance))

    async def _sample(self, instance: Instance) -> None:
        running = instance.running
        if running is None:
            return
        answer = await self._client.slots(running.port, running.key)
        if answer is None or not instance.process_alive:
            return
        now = time.monotonic()
        rates = [self._rate(instance, raw, now) for raw in answer]
        before = instance.slots
        instance.slots = tuple(slot for slot, _ in rates)
        instance.sampled_s = now
        instance.prompt_tokens_per_s = _sum(prompt for _, (prompt, _) in rates)
        instance.generation_tokens_per_s = _sum(generated for _, (_, generated) in rates)
        if instance.slots != before:
            self._changes.mark()

    def _rate(
        self, instance: Instance, raw: Mapping[str, Any], now: float
    ) -> tuple[Slot, tuple[float | None, float | None]]:
        slot = parse_slot(raw)
        key = (instance.name, slot.id)
        task = raw.get("id_task") if isinstance(raw.get("id_task"), int) else None
        old = self._counts.get(key)
        self._counts[key] = Counts(now, task, slot.prompt_done, slot.generated)
        if old is None or old.task != task or now <= old.at_s or slot.state == "idle":
            return slot, (None, None)
        seconds = now - old.at_s
        prompt = max(0, slot.prompt_done - old.prompt_done) / seconds
        generated = max(0, slot.generated - old.generated) / seconds
        return _with_rate(slot, generated), (prompt, generated)


def parse_slot(raw: Mapping[str, Any]) -> Slot:
    """One entry of `/slots`, in the old and the new form of `next_token` (14 §5). Missing counts are 0."""
    following = raw.get("next_token")
    if isinstance(following, list):
        following = following[0] if following else {}
    if not isinstance(following, Mapping):
        following = {}
    generated = _count(following.get("n_decoded"))
    prompt = _count(raw.get("n_prompt_tokens"))
    cached = _count(raw.get("n_prompt_tokens_cache"))
    done = min(prompt, cached + _count(raw.get("n_prompt_tokens_processed")))
    state: Literal["idle", "processing_prompt", "generating"] = "idle"
    # Builds before the summer of 2024 had a number in its place: 0 is idle.
    if raw.get("is_processing") is True or _count(raw.get("state")):
        state = "generating" if generated else "processing_prompt"
    return Slot(
        id=_count(raw.get("id")),
        state=state,
        # Builds that do not tell the length of a prompt tell at least what came after it.
        context_tokens=max(prompt, generated),
        context_limit=_count(raw.get("n_ctx")),
        # `n_prompt_tokens` grows with every generated token (15 §6): what is generated is no prompt.
        prompt_tokens=max(0, prompt - generated),
        prompt_done=min(done, max(0, prompt - generated)),
        generated=generated,
        tokens_per_s=None,
        draft=slot_draft(raw.get("speculation")),
        request_id=None,
        stale_s=0.0,
    )


def slot_draft(told: Any) -> Mapping[str, Any] | None:
    """What the native engine says of a slot's drafts (13 §5); none where nothing was asked for, and of
    engines that do not tell. `gain` is what drafting is expected to bring by the engine's last decision, as a
    share of the speed without."""
    if not isinstance(told, Mapping):
        return None
    reason = _word(told.get("fallback_reason")) or _word(told.get("idle_reason"))
    drafted = _count(told.get("drafted"))
    if not told.get("types") and not drafted and reason in {None, NOT_ASKED}:
        return None
    return {
        "depth": _count(told.get("depth")),
        "drafted": drafted,
        "accepted": min(drafted, _count(told.get("accepted"))),
        "controller": _word(told.get("controller")),
        "reason": reason,
        "gain": _share(told.get("gain")),
    }


def _worth_a_look(instance: Instance) -> bool:
    if instance.sampled_s is None or instance.leases or instance.sampled_s <= instance.idle_since_s:
        # Once more after the last request: one that was short may have come and gone between two looks.
        return True
    return any(slot.state != "idle" for slot in instance.slots)


def _with_rate(slot: Slot, tokens_per_s: float) -> Slot:
    return replace(slot, tokens_per_s=round(tokens_per_s, 2))


def _sum(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 2) if known else None


def _word(value: Any) -> str | None:
    """A name of the engine's, which is nobody's free text."""
    return value if isinstance(value, str) and WORD.fullmatch(value) else None


def _share(value: Any) -> float | None:
    """A finite number, to two digits."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return round(max(-1.0, min(float(value), MOST_GAIN)), 2)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0

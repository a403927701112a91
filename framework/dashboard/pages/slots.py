"""The slots grid: what each lane of an engine does now (cases MD-07). Pure; unknown facts stay unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framework.dashboard.formats import share
from framework.dashboard.states import Tone
from framework.dashboard.updates import Fragment
from framework.values.instance import InstanceView, Slot, State

STATES: Mapping[str, tuple[str, Tone]] = {
    "idle": ("idle", "idle"),
    "processing_prompt": ("reading the prompt", "wait"),
    "generating": ("generating", "ok"),
}
# Younger samples are as good as now.
FRESH_S = 5.0
STALE_STEP_S = 5
BAR_STEPS = 1000


@dataclass(frozen=True)
class SlotCell:
    """One slot; token counts, fractions from 0 to 1. A `context_limit` of 0 is not known."""

    id: str
    number: int
    state: str
    tone: Tone
    context_tokens: int
    context_limit: int
    context_share: float
    prompt_tokens: int
    prompt_done: int
    prompt_share: float
    generated: int
    tokens_per_s: float | None
    drafted: int | None
    accepted: int | None
    acceptance: float | None
    depth: int | None
    gain_share: float | None
    """What drafting is expected to bring, of the speed without."""
    why_not: str
    """Why nothing is drafted, in the engine's word; empty: unknown, or it drafts."""
    stale_s: float | None


@dataclass(frozen=True)
class SlotRates:
    """The instance in numbers above its slots."""

    id: str
    busy: int
    slots: int
    prompt_tokens_per_s: float | None
    generation_tokens_per_s: float | None


@dataclass(frozen=True)
class SlotGrid:
    """All slots of one instance. `absent` says why there are none; empty where nobody expects any."""

    id: str
    rates: SlotRates
    cells: tuple[SlotCell, ...]
    absent: str


def slot_grid(element: str, instance: InstanceView | None) -> SlotGrid:
    """The slots of an instance."""
    slots = instance.slots if instance is not None else ()
    is_working = instance is not None and instance.inflight > 0
    cells = tuple(_cell(f"{element}-{slot.id}", slot, is_working=is_working) for slot in slots)
    rates = SlotRates(
        id=f"{element}-rates",
        busy=sum(slot.state != "idle" for slot in slots),
        slots=len(slots),
        prompt_tokens_per_s=instance.prompt_tokens_per_s if instance is not None else None,
        generation_tokens_per_s=instance.generation_tokens_per_s if instance is not None else None,
    )
    return SlotGrid(element, rates, cells, "" if cells else _absent(instance))


def slot_fragment(grid: SlotGrid) -> Fragment:
    """The grid, of which only the cells that move are sent."""
    cells = tuple(Fragment(cell.id, "_slot.html", "slot", cell) for cell in grid.cells)
    rates = Fragment(grid.rates.id, "_slot_rates.html", "rates", grid.rates)
    outline = (grid.absent, tuple(cell.id for cell in grid.cells))
    return Fragment(grid.id, "_slots.html", "grid", grid, outline=outline, parts=(rates, *cells))


def _absent(instance: InstanceView | None) -> str:
    if instance is None or instance.state not in (State.READY, State.DRAINING):
        return ""
    return "The engine has not told its slots yet."


def _cell(element: str, slot: Slot, *, is_working: bool) -> SlotCell:
    state, tone = STATES.get(slot.state, (slot.state, "wait"))
    drafted, accepted = _number(slot.draft, "drafted"), _number(slot.draft, "accepted")
    # Nothing changes in a slot at rest, so that its last sample holds however old it is.
    stale = slot.stale_s > FRESH_S and (is_working or slot.state != "idle")
    return SlotCell(
        id=element,
        number=slot.id,
        state=state,
        tone=tone,
        context_tokens=slot.context_tokens,
        context_limit=slot.context_limit,
        context_share=_step(slot.context_tokens, slot.context_limit),
        prompt_tokens=slot.prompt_tokens,
        prompt_done=slot.prompt_done,
        prompt_share=_step(slot.prompt_done, slot.prompt_tokens),
        generated=slot.generated,
        tokens_per_s=slot.tokens_per_s,
        drafted=drafted,
        accepted=accepted,
        acceptance=accepted / drafted if drafted and accepted is not None else None,
        depth=_number(slot.draft, "depth"),
        gain_share=_share(slot.draft, "gain"),
        why_not=_text(slot.draft, "reason"),
        stale_s=float(slot.stale_s // STALE_STEP_S * STALE_STEP_S) if stale else None,
    )


def _step(part: int, whole: int) -> float:
    return round(share(part, whole) * BAR_STEPS) / BAR_STEPS


def _number(draft: Mapping[str, Any] | None, name: str) -> int | None:
    value = None if draft is None else draft.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _share(draft: Mapping[str, Any] | None, name: str) -> float | None:
    value = None if draft is None else draft.get(name)
    return value if isinstance(value, float) else None


def _text(draft: Mapping[str, Any] | None, name: str) -> str:
    value = None if draft is None else draft.get(name)
    return value if isinstance(value, str) else ""

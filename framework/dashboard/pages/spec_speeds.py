"""What drafting was measured to bring, and what the yield watch makes of it (05 §11.7). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from framework.dashboard.formats import share
from framework.dashboard.pages.spec_words import WORDS, running_value
from framework.dashboard.states import Tone
from framework.planning.speculation.profit import UNPROFITABLE
from framework.values.instance import ModelView
from framework.values.reason import Reason
from framework.values.request import YieldWatch
from framework.values.spec_yield import PLAIN, SpeedAt, best_known
from framework.values.units_text import UNKNOWN, counted, duration

WATCHES: dict[YieldWatch, str] = {
    "switch-off": "switches drafting off where it is slower",
    "report": "reports where drafting is slower",
    "off": "is off",
}
"""What the watch of a model does."""
AFTERWARDS: dict[YieldWatch, str] = {
    "switch-off": "it is started anew without drafting as soon as it has been quiet for a while",
    "report": "nothing is changed, since yield_watch only reports",
    "off": "nothing is changed, since yield_watch is off",
}
"""What follows when it found drafting to be slower."""
# Within this of 1 a speed-up is none that anybody would notice.
EVEN_SHARE = 0.03
BAR_STEPS = 1000
# Rates move with every answer; a tenth is what is shown.
RATE_DIGITS = 1
SPEEDUP_DIGITS = 2
# A time of losing is shown in steps: finer ones would only be sent.
LOSING_STEP_S = 30


@dataclass(frozen=True)
class SpeedRow:
    """Speeds at one number of busy slots. Shares are of the fastest speed of the table."""

    drafts: str
    busy: int
    drafting_tokens_per_s: float
    drafting_share: float
    drafting_requests: int
    plain_tokens_per_s: float | None
    plain_share: float
    plain_requests: int
    acceptance_share: float | None
    speedup: str
    tone: Tone
    icon: str


@dataclass(frozen=True)
class Standing:
    """Where the watch stands, in one sentence."""

    tone: Tone
    icon: str
    text: str


@dataclass(frozen=True)
class SpeedSection:
    """The measurements of one model. `watch` says what its watch does, empty where nothing is asked to draft;
    `standing` what it found."""

    id: str
    model: str
    watch: str
    standing: Standing
    verdict: tuple[Reason, ...]
    rows: tuple[SpeedRow, ...]


def speed_section(element: str, view: ModelView) -> SpeedSection:
    """What is measured of a model."""
    fastest = max((speed for one in view.speeds for speed in _both(one)), default=0.0)
    verdict = view.spec_yield.verdict
    return SpeedSection(
        id=element,
        model=view.request.id,
        watch="" if view.request.spec.mode == "off" else WATCHES[view.request.live.yield_watch],
        standing=_standing(view),
        verdict=() if verdict is None else (verdict,),
        rows=tuple(_row(one, fastest) for one in view.speeds),
    )


def speedup_text(one: SpeedAt | None) -> str:
    """`1.84` and a times sign: speed with drafting over speed without."""
    known = None if one is None else one.speedup
    return UNKNOWN if known is None else f"{known:.{SPEEDUP_DIGITS}f}\u00d7"


def speedup_look(one: SpeedAt | None) -> tuple[Tone, str]:
    """How it looks: faster, even or slower; what is not known has no icon."""
    known = None if one is None else one.speedup
    if known is None:
        return "idle", ""
    if abs(known - 1) <= EVEN_SHARE:
        return "idle", "dot"
    return ("ok", "check") if known > 1 else ("bad", "warn")


def _row(one: SpeedAt, fastest: float) -> SpeedRow:
    tone, icon = speedup_look(one)
    plain = one.plain_tokens_per_s
    return SpeedRow(
        drafts=WORDS.get(one.running, one.running),
        busy=one.busy_slots,
        drafting_tokens_per_s=round(one.drafting_tokens_per_s, RATE_DIGITS),
        drafting_share=_step(one.drafting_tokens_per_s, fastest),
        drafting_requests=one.drafting_requests,
        plain_tokens_per_s=None if plain is None else round(plain, RATE_DIGITS),
        plain_share=_step(plain or 0.0, fastest),
        plain_requests=one.plain_requests,
        acceptance_share=None if one.acceptance is None else round(one.acceptance, 2),
        speedup=speedup_text(one),
        tone=tone,
        icon=icon,
    )


def _standing(view: ModelView) -> Standing:
    """The first of these that is so: found slower, switched off, nothing to judge, losing, known, too few."""
    watch, known = view.request.live.yield_watch, view.spec_yield
    if known.verdict is not None:
        return Standing("bad", "warn", f"Slower than without: {AFTERWARDS[watch]}.")
    plans = [instance.granted for instance in view.instances]
    reasons = [plan.spec.reason for plan in plans if plan is not None]
    if any(reason is not None and reason.code == UNPROFITABLE for reason in reasons):
        return Standing("wait", "clock", "Switched off because it was slower; it is tried again by itself.")
    running = {value for one in view.instances if (value := running_value(one)) is not None}
    if not running:
        return Standing("idle", "circle", "Not loaded, so there is nothing to judge.")
    if running == {PLAIN}:
        return Standing("idle", "circle", "Nothing drafts, so there is nothing to judge.")
    now = [one for one in known.speeds if one.running in running]
    losing = [one for one in now if one.losing_s is not None]
    if losing:
        worst = max(losing, key=lambda one: one.losing_s or 0.0)
        since = duration((worst.losing_s or 0.0) // LOSING_STEP_S * LOSING_STEP_S)
        return Standing("wait", "clock", f"Slower than without for {since}, {_at(worst)}.")
    return _compared(now, known.needed_requests)


def _compared(speeds: Sequence[SpeedAt], needed: int) -> Standing:
    """What the best comparison says, or what it lacks."""
    best = best_known(speeds)
    if best is not None and min(best.drafting_requests, best.plain_requests) >= needed:
        tone, icon = speedup_look(best)
        words = {"ok": "Worth it", "idle": "Neither faster nor slower", "bad": "Slower, but not for long yet"}
        return Standing(tone, icon, f"{words[tone]}: {speedup_text(best)} the speed without, {_at(best)}.")
    most = max(speeds, key=lambda one: one.drafting_requests, default=None) if best is None else best
    if most is None:
        return Standing("idle", "circle", "Not measured yet: no answer of some length has come to an end.")
    return Standing(
        "idle",
        "clock",
        f"Too few answers to judge: {most.drafting_requests:,} with drafting and {most.plain_requests:,} "
        f"without, {_at(most)}; {needed:,} of each are needed.",
    )


def _at(one: SpeedAt) -> str:
    return f"with {counted(one.busy_slots, 'busy slot')}"


def _both(one: SpeedAt) -> tuple[float, float]:
    return one.drafting_tokens_per_s, one.plain_tokens_per_s or 0.0


def _step(part: float, whole: float) -> float:
    return round(share(part, whole) * BAR_STEPS) / BAR_STEPS

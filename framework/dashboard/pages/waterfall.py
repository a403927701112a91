"""The memory of a launch as a waterfall: on each device, every line begins where the last one ended. Pure.

What counts against the budget comes first, then pages of files and what grows later: the system can drop the
ones and need not hold the others yet. Drawn as SVG from shares of the axis; the same numbers stand in a table
beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from framework.dashboard.formats import share
from framework.dashboard.pages.ids import element_id
from framework.values.device import HOST_NAME
from framework.values.plan import Basis, FitPlan, MemoryLine, Remedy
from framework.values.units_text import counted, size

# Words for the labels of 13 §2; others are shown as they are.
LABELS = {
    "kv": "KV cache",
    "compute": "compute buffers",
    "output": "output buffer",
    "drafter_kv": "drafter KV cache",
    "drafter_compute": "drafter compute buffers",
    "checkpoints": "context checkpoints",
    "runtime": "driver and runtime",
}
MAPPED = "pages of the file, which the system can drop and read again"
GROWS = "taken bit by bit while it serves, up to this"
NOT_PLANNED = "Not planned yet: memory is worked out when the model starts."
ENGINE_DECIDES = "Memory was not planned; the engine's own fit step decides what goes where."
# What is so much longer than the rest would make the rest invisible: it leaves the picture, and says so.
LONGEST_RATIO = 4.0
# Room at the right end of the axis, for a mark that stands there.
MARGIN_RATIO = 1.02
# Pixels: the line above the steps, one step, and in it the base line of its text, its bar.
TOP, STEP = 20, 32
TEXT_BASE, BAR_TOP = 11, 16
# What is there is seen, however small it is.
LEAST_WIDTH_SHARE = 0.003
# A text that begins further right than this would leave a narrow picture; it ends at its step then.
LAST_TEXT_START_SHARE = 0.42
FIRST_TEXT_END_SHARE = 0.6


@dataclass(frozen=True)
class Step:
    """One line. Shares are of the axis; `over_*` is the part above the budget. `y` are pixels."""

    label: str
    size_bytes: int
    basis: Basis
    note: str
    soft: bool
    """Does not count against the budget."""
    cut: bool
    """Goes on beyond the picture."""
    start_share: float
    width_share: float
    over_start_share: float
    over_width_share: float
    text_share: float
    anchor: str
    text_y: int
    bar_y: int


@dataclass(frozen=True)
class Mark:
    """The budget on the axis; `cut` when it lies beyond the picture."""

    size_bytes: int
    share: float
    cut: bool
    anchor: str


@dataclass(frozen=True)
class Waterfall:
    """One device. `needed_bytes` are there from the start and have to fit into the budget."""

    id: str
    device: str
    verdict: str
    tone: str
    icon: str
    description: str
    height: int
    steps: tuple[Step, ...]
    marks: tuple[Mark, ...]
    needed_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class MemorySection:
    """The waterfalls of a launch, perhaps one that is over. `absent` says why there are none."""

    id: str
    settings: str
    waterfalls: tuple[Waterfall, ...]
    remedies: tuple[Remedy, ...]
    absent: str
    of_last_start: bool = False


def memory_section(element: str, fit: FitPlan | None, *, of_last_start: bool = False) -> MemorySection:
    """The section of a plan; None where nothing was planned yet."""
    if fit is None or not fit.lines:
        return MemorySection(element, "", (), (), NOT_PLANNED if fit is None else ENGINE_DECIDES)
    devices = dict.fromkeys(line.device for line in fit.lines)
    waterfalls = tuple(_waterfall(element, device, fit) for device in devices)
    return MemorySection(element, _settings(fit), waterfalls, fit.remedies, "", of_last_start)


def _waterfall(element: str, device: str, fit: FitPlan) -> Waterfall:
    lines = sorted((line for line in fit.lines if line.device == device), key=lambda line: not line.is_needed)
    needed, budget = fit.needed_bytes(device), fit.budget_bytes.get(device)
    axis = _axis_bytes(lines, budget)
    steps = tuple(_steps(lines, axis, budget))
    verdict, tone, icon = _verdict(needed, budget)
    name = f"{element}-{element_id('d', device)}"
    return Waterfall(
        id=name,
        device=device,
        verdict=verdict,
        tone=tone,
        icon=icon,
        description="; ".join(f"{step.label} {size(step.size_bytes)}" for step in steps) + f". {verdict}.",
        height=TOP + STEP * len(steps),
        steps=steps,
        marks=() if budget is None else (_mark(budget, axis),),
        needed_bytes=needed,
        total_bytes=sum(line.bytes for line in lines),
    )


def _steps(lines: Iterable[MemoryLine], axis_bytes: float, budget: int | None) -> Iterable[Step]:
    at = 0
    for number, line in enumerate(lines):
        start, end = share(at, axis_bytes), share(at + line.bytes, axis_bytes)
        counts = budget is not None and line.is_needed
        over = min(end, max(start, share(budget or 0, axis_bytes))) if counts else end
        late = start > LAST_TEXT_START_SHARE
        yield Step(
            label=LABELS.get(line.label, line.label.replace("_", " ")),
            size_bytes=line.bytes,
            basis=line.basis,
            note=GROWS if line.grows else MAPPED if line.mapped else "",
            soft=not line.is_needed,
            cut=at + line.bytes > axis_bytes,
            start_share=start,
            width_share=max(end - start, LEAST_WIDTH_SHARE),
            over_start_share=over,
            over_width_share=end - over,
            text_share=max(end, FIRST_TEXT_END_SHARE) if late else start,
            anchor="end" if late else "start",
            text_y=TOP + STEP * number + TEXT_BASE,
            bar_y=TOP + STEP * number + BAR_TOP,
        )
        at += line.bytes


def _axis_bytes(lines: Sequence[MemoryLine], budget: int | None) -> float:
    """The length of the axis: all that is there from the start, and the rest as far as it is no giant."""
    own = sum(line.bytes for line in lines if not line.grows)
    all_bytes = sum(line.bytes for line in lines)
    length = own or all_bytes or 1
    for wish in (all_bytes, budget or 0):
        if length < wish <= own * LONGEST_RATIO:
            length = wish
    return length * MARGIN_RATIO


def _mark(budget: int, axis_bytes: float) -> Mark:
    at = share(budget, axis_bytes)
    return Mark(budget, at, budget > axis_bytes, "end" if at > LAST_TEXT_START_SHARE else "start")


def _verdict(needed: int, budget: int | None) -> tuple[str, str, str]:
    """In words, with tone and icon."""
    if budget is None:
        return f"{size(needed)} from the start; what is free there is not known", "idle", "info"
    if needed > budget:
        over = f"Over budget by {size(needed - budget)}: {size(needed)} needed"
        return f"{over} from the start, {size(budget)} may be planned", "bad", "cross"
    left = size(budget - needed)
    return f"Fits: {size(needed)} of {size(budget)} taken from the start, {left} left", "ok", "check"


def _settings(fit: FitPlan) -> str:
    """What the numbers are for."""
    key, value = fit.cache_types
    parts = [] if fit.context is None else [counted(fit.context, "token")]
    parts += [counted(fit.slots, "slot")] if fit.slots else []
    parts.append(f"KV cache {key}" if key == value else f"KV cache {key} / {value}")
    if fit.gpu_layers is not None and set(fit.total_bytes) != {HOST_NAME}:
        parts.append(f"{counted(fit.gpu_layers, 'layer')} on GPUs")
    if fit.cpu_experts:
        parts.append(f"experts of {counted(fit.cpu_experts, 'layer')} in host memory")
    return ", ".join(parts)

"""What to change when a plan does not fit: each change computed, with what it buys and what it costs. Pure.

Called where a plan is shown or refused. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from framework.planning.memory.context_fit import SHORTEST, bisect
from framework.planning.memory.fit import EVERYTHING, NO_EXTRAS, Extras, largest_context, plan_memory
from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import CacheSettings, Hardware, Offload, bytes_per_element
from framework.planning.memory.shape import ModelShape
from framework.planning.memory.tensor_table import TensorTable
from framework.values.plan import FitPlan, Remedy, RemedyKind
from framework.values.units_text import count, counted, tokens

# From what is felt least to what is felt most.
ORDER: tuple[RemedyKind, ...] = ("cache_type", "slots", "context", "variant", "experts", "layers")
# Cache types that are worth trying, the milder one first.
SMALLER_TYPES = ("q8_0", "q4_0")
MIB, GIB = 1 << 20, 1 << 30
BITS = 8
# A change that frees less is not worth a sentence.
WORTH_BYTES = 16 * MIB


@dataclass(frozen=True)
class Variant:
    """Another quantisation of the same model, and the size of its files."""

    name: str
    bytes: int


def remedies(
    shape: ModelShape,
    tensors: TensorTable,
    settings: CacheSettings,
    hardware: Hardware,
    offload: Offload = EVERYTHING,
    extras: Extras = NO_EXTRAS,
    variants: Sequence[Variant] = (),
    *,
    moves: bool = True,
) -> tuple[Remedy, ...]:
    """Changes worth making, best first: those that suffice by how little they are felt, then the others by
    what they buy. Empty where nothing can be gained. Without `moves` nothing is moved to host memory."""
    finder = _Finder(shape, tensors, settings, hardware, offload, extras)
    found = [remedy for remedy in finder.all(variants, moves=moves) if remedy.frees_bytes >= WORTH_BYTES]
    found.sort(key=lambda r: (not r.fits, ORDER.index(r.kind) if r.fits else -r.frees_bytes))
    return tuple(found)


@dataclass(frozen=True)
class _Finder:
    shape: ModelShape
    tensors: TensorTable
    settings: CacheSettings
    hardware: Hardware
    offload: Offload
    extras: Extras

    def all(self, variants: Sequence[Variant], *, moves: bool) -> Iterator[Remedy]:
        plan = self._plan()
        yield from self._smaller_cache(plan)
        yield from self._fewer_slots(plan)
        yield from self._shorter_context(plan)
        yield from (self._variant(plan, variant) for variant in variants)
        if self.hardware.gpus and moves:
            yield from self._experts_to_host(plan)
            yield from self._fewer_layers(plan)

    def _plan(self, settings: CacheSettings | None = None, offload: Offload | None = None) -> FitPlan:
        return plan_memory(
            self.shape,
            self.tensors,
            settings or self.settings,
            self.hardware,
            offload or self.offload,
            self.extras,
        )

    def _remedy(
        self, kind: RemedyKind, to: str | int, before: FitPlan, after: FitPlan, change: str, cost: str
    ) -> Remedy:
        freed = _freed_bytes(before, after)
        return Remedy(kind, to, freed, bool(after.fits), f"{change}: {_size(freed)} less; {cost}.")

    def _smaller_cache(self, plan: FitPlan) -> Iterator[Remedy]:
        settings = self.settings
        heaviest = max(bytes_per_element(settings.key_type), bytes_per_element(settings.value_type))
        for cache_type in SMALLER_TYPES:
            size = bytes_per_element(cache_type)
            if size >= heaviest:
                continue
            values = cache_type if settings.flash_attention else settings.value_type
            after = self._plan(replace(settings, key_type=cache_type, value_type=values))
            cost = f"{size * BITS:g} bits a number instead of {heaviest * BITS:g} cost some accuracy"
            change = f"Store the cache as {cache_type}"
            yield self._remedy("cache_type", cache_type, plan, after, change, cost)
            if after.fits:
                return

    def _fewer_slots(self, plan: FitPlan) -> Iterator[Remedy]:
        slots = self.settings.slots
        if slots <= 1:
            return
        fewer = bisect(1, slots - 1, lambda number: bool(self._with_slots(number).fits))
        change = f"Use {counted(fewer, 'slot')} instead of {slots}"
        cost = "further requests wait until one is free"
        yield self._remedy("slots", fewer, plan, self._with_slots(fewer), change, cost)

    def _with_slots(self, slots: int) -> FitPlan:
        return self._plan(replace(self.settings, slots=slots))

    def _shorter_context(self, plan: FitPlan) -> Iterator[Remedy]:
        asked = self.settings.n_ctx
        useful = min(asked, self._most_useful_context())
        settings = replace(self.settings, n_ctx=useful)
        found = largest_context(self.shape, self.tensors, settings, self.hardware, self.offload, self.extras)
        context = found.context
        if context >= useful and (useful == asked or not found.fits):
            context = max(min(SHORTEST, useful), useful // 2)
        if context >= asked:
            return
        after = self._plan(replace(self.settings, n_ctx=context))
        change = f"Shorten the context to {tokens(context)} instead of {count(asked)}"
        cost = "longer conversations do not fit any more"
        if context == useful:
            cost = "each slot is capped at what the model was trained for, so the rest is never used"
        yield self._remedy("context", context, plan, after, change, cost)

    def _most_useful_context(self) -> int:
        """Each slot is capped at the trained context, so more than all of them can use is never used."""
        trained = self.shape.context_length
        return max(1, self.settings.slots) * trained if trained else self.settings.n_ctx

    def _variant(self, plan: FitPlan, variant: Variant) -> Remedy:
        """Weights in proportion to the files; everything else stays."""
        whole = sum(line.bytes for line in plan.lines if line.label == "weights")
        ratio = variant.bytes / whole if whole else 1.0
        lines = tuple(
            replace(line, bytes=int(line.bytes * ratio)) if line.label == "weights" else line
            for line in plan.lines
        )
        after = replace(plan, lines=lines)
        fits = all(after.needed_bytes(name) <= budget for name, budget in plan.budget_bytes.items())
        after = replace(after, fits=fits if plan.budget_bytes else None)
        change, cost = f"Use the variant {variant.name}", "its weights have a lower precision"
        return self._remedy("variant", variant.name, plan, after, change, cost)

    def _experts_to_host(self, plan: FitPlan) -> Iterator[Remedy]:
        layers = [number for number, layer in enumerate(self.tensors.layers) if layer.has("ffn_gate_inp")]
        if not layers or self.offload.cpu_experts > layers[-1]:
            return
        first, last = self.offload.cpu_experts + 1, layers[-1] + 1
        kept = self._fewest(first, last, lambda number: replace(self.offload, cpu_experts=number))
        after = self._plan(offload=replace(self.offload, cpu_experts=kept))
        change = f"Keep the experts of the first {counted(kept, 'layer')} in host memory"
        cost = f"{_size(_host_growth(plan, after))} more are read there, which is slower"
        yield self._remedy("experts", kept, plan, after, change, cost)

    def _fewer_layers(self, plan: FitPlan) -> Iterator[Remedy]:
        most = self.shape.layers + 1
        now = most if self.offload.gpu_layers is None else min(self.offload.gpu_layers, most)
        if now <= 0:
            return
        moved = self._fewest(1, now, lambda number: replace(self.offload, gpu_layers=now - number))
        after = self._plan(offload=replace(self.offload, gpu_layers=now - moved))
        change = f"Put {counted(now - moved, 'layer')} on GPUs instead of {count(now)}"
        cost = f"{_size(_host_growth(plan, after))} more are in host memory, which every token waits for"
        yield self._remedy("layers", now - moved, plan, after, change, cost)

    def _fewest(self, low: int, high: int, offload: Callable[[int], Offload]) -> int:
        """The smallest number in [low, high] with which the plan fits, `high` if none does."""
        return high - bisect(0, high - low, lambda less: bool(self._plan(offload=offload(high - less)).fits))


def _freed_bytes(before: FitPlan, after: FitPlan) -> int:
    """What the devices get back that are too full; where none is, all GPUs, or host memory without any."""
    too_full = [
        name for name, budget in before.budget_bytes.items() if before.needed_bytes(name) > budget
    ] or [name for name in before.total_bytes if name != HOST]
    return sum(before.needed_bytes(name) - after.needed_bytes(name) for name in too_full or [HOST])


def _host_growth(before: FitPlan, after: FitPlan) -> int:
    return after.total_bytes.get(HOST, 0) - before.total_bytes.get(HOST, 0)


def _size(size: int) -> str:
    """One decimal also of hundreds of GiB: what a change buys is compared with what another one does."""
    if abs(size) >= GIB:
        return f"{size / GIB:,.1f} GiB"
    return f"{size / MIB:,.0f} MiB"

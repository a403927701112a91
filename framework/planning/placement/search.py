"""Where a launch goes: the fewest devices that hold it, layer by layer (04 §9, §10). Pure.

Called by planning.launch_place. Works with exact lines: a place counts only when the plan of that very
placement stays within every device. Decides devices, context, slots, layers and experts; refuses nothing:
what cannot be had within a freedom is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from framework.planning.launch_memory import EXPERT_GATE, ModelMemory, extras_of
from framework.planning.line_settings import LineSettings
from framework.planning.memory.budget import budgets
from framework.planning.memory.context_fit import SHORTEST, bisect
from framework.planning.memory.fit import Extras, plan_memory
from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import CELL_PADDING, CacheSettings, GpuBudget, Hardware, Offload
from framework.planning.placement.choice import Choice
from framework.planning.placement.layer_split import layer_bytes, proportional, split_layers
from framework.planning.placement.room import emptied
from framework.planning.placement.selection import ranked, select_cards
from framework.values.plan import FitPlan
from framework.values.pool import Freedom

# Where something has to lie in host memory anyway, a context of less is of no use (06 §6.1 row 12').
SHORTEST_OFFLOADED = 8192
# A split changes what each device computes, and with it the room that is left for layers.
SPLITS = 4
# Guesses at a context before what was found has to do.
GUESSES = 14
# Every so manieth of them just halves what is left, in case growth is not even.
HALVED = 3


@dataclass(frozen=True)
class Asked:
    """What a launch asks for, and what of it may be less."""

    context: int
    """Tokens of all slots together."""
    is_automatic: bool
    """Nobody asked for this context: it may be shorter."""
    slots: int
    may_use_fewer_slots: bool


class Search:
    """The places of one launch on one set of devices."""

    def __init__(self, line: LineSettings, model: ModelMemory, hardware: Hardware, asked: Asked) -> None:
        self._line = line
        self._model = model
        self.asked = asked
        self.hardware = hardware
        self.most_layers = model.shape.layers + 1
        self._tried: dict[object, Choice] = {}

    def find(self, freedom: Freedom) -> Choice | None:
        """The best place within a freedom; more freedom is used only where less does not do."""
        found = self._whole()
        if found is None and freedom != "whole":
            found = self._shrunk()
        if found is None and freedom == "offloaded":
            found = self._offloaded()
        return found

    def best_try(self) -> Choice:
        """What comes closest as it was asked, for saying why it does not fit.

        On the roomiest devices, as few as could hold it if nothing were there; on all where none could.
        """
        context = self._least if self.asked.is_automatic else self.asked.context
        for count in range(1, len(self._ranked) + 1):
            tried = self.at(self._best(count), context, self.asked.slots)
            if count == len(self._ranked) or self._on_empty(tried):
                return tried
        return self.at((), context, self.asked.slots)

    def at(
        self,
        gpus: Sequence[GpuBudget],
        context: int,
        slots: int,
        *,
        layers: int | None = None,
        experts: int = 0,
        hardware: Hardware | None = None,
    ) -> Choice:
        """The plan of one placement, fitting or not; `layers` are those on GPUs."""
        base = hardware or self.hardware
        wanted = self.most_layers if layers is None else layers
        key = (tuple(gpus), context, slots, wanted, experts, base is self.hardware)
        found = self._tried.get(key)
        if found is None:
            used = tuple(gpus) if wanted > 0 else ()
            place = _Place(self._line, self._model, replace(base, gpus=used), context, slots)
            choice = place.choice(min(wanted, self.most_layers), experts)
            found = self._tried[key] = replace(choice, could_use_gpus=bool(self.hardware.gpus))
        return found

    # As asked

    def _whole(self) -> Choice | None:
        context, slots = self.asked.context, self.asked.slots
        if not self.hardware.gpus:
            return _if_fits(self.at((), context, slots))
        most = self._most_cards if self.asked.is_automatic else len(self._ranked)
        return self._on_fewest(lambda gpus: _if_fits(self.at(gpus, context, slots)), context, most)

    @cached_property
    def _most_cards(self) -> int:
        """An automatic context gets no more cards than the model needs with the shortest one: fewer cards
        with a shorter context beat more cards (04 §10.8)."""
        empty = emptied(self.hardware)
        sizes = budgets(empty)
        order = ranked(empty.gpus, [sizes[gpu.name] for gpu in empty.gpus])
        for count in range(1, len(order)):
            chosen = [empty.gpus[place] for place in sorted(order[:count])]
            if self.at(chosen, self._least, self.asked.slots, hardware=empty).fit.fits:
                return count
        return len(order)

    # Shorter, or with fewer slots

    def _shrunk(self) -> Choice | None:
        asked = self.asked
        if asked.is_automatic:
            found = self._shortened(asked.slots)
            if found is not None:
                return found
        if not asked.may_use_fewer_slots or asked.slots <= 1:
            return None
        slots = bisect(0, asked.slots - 1, lambda count: count == 0 or self._with_slots(count) is not None)
        return self._with_slots(slots) if slots else None

    def _with_slots(self, slots: int) -> Choice | None:
        if self.asked.is_automatic:
            return self._shortened(slots)
        context = self.asked.context
        return self._on_each(lambda gpus: _if_fits(self.at(gpus, context, slots)), context)

    def _shortened(self, slots: int) -> Choice | None:
        return self._on_each(lambda gpus: self._longest(gpus, slots), self._least)

    def _longest(self, gpus: Sequence[GpuBudget], slots: int) -> Choice | None:
        """The place with the longest context that these devices hold."""
        least = self.at(gpus, self._least, slots)
        if not least.fit.fits:
            return None
        whole = self.at(gpus, self.asked.context, slots)
        return whole if whole.fit.fits else self._between(gpus, slots, least, whole)

    def _between(self, gpus: Sequence[GpuBudget], slots: int, low: Choice, high: Choice) -> Choice:
        """Guess where the room ends: nearly everything grows evenly with the context."""
        for guess in range(GUESSES):
            first, last = low.context // CELL_PADDING, high.context // CELL_PADDING
            if last <= first or (last - first == 1 and high.context % CELL_PADDING == 0):
                break
            left, over = _slack(low.fit), -_slack(high.fit)
            is_even = left > 0 and over > 0 and guess % HALVED != HALVED - 1
            share = left / (left + over) if is_even else 0.5
            middle = min(max(first + 1, first + int((last - first) * share)), max(first + 1, last - 1))
            tried = self.at(gpus, middle * CELL_PADDING, slots)
            if tried.context >= high.context:
                break
            low, high = (tried, high) if tried.fit.fits else (low, tried)
        return low

    # With something in host memory

    def _offloaded(self) -> Choice | None:
        if not self.hardware.gpus:
            return None
        context = self.asked.context
        if self.asked.is_automatic:
            context = min(SHORTEST_OFFLOADED, context)
        slots = self.asked.slots
        gates = [n for n, layer in enumerate(self._model.tensors.layers) if layer.has(EXPERT_GATE)]
        experts = gates[-1] + 1 if gates else 0
        if experts and self._moved(context, slots, self.most_layers, experts).fit.fits:
            kept = bisect(
                0,
                experts,
                lambda count: bool(self._moved(context, slots, self.most_layers, experts - count).fit.fits),
            )
            return self._moved(context, slots, self.most_layers, experts - kept)
        layers = bisect(
            0, self.most_layers, lambda count: bool(self._moved(context, slots, count, experts).fit.fits)
        )
        return _if_fits(self._moved(context, slots, layers, experts))

    def _moved(self, context: int, slots: int, layers: int, experts: int) -> Choice:
        return self.at(self.hardware.gpus, context, slots, layers=layers, experts=experts)

    # Devices

    @property
    def _least(self) -> int:
        return min(SHORTEST, self.asked.context)

    @cached_property
    def _usable(self) -> list[int]:
        sizes = budgets(self.hardware)
        return [sizes[gpu.name] for gpu in self.hardware.gpus]

    @cached_property
    def _ranked(self) -> list[int]:
        return ranked(self.hardware.gpus, self._usable)

    def _best(self, count: int) -> tuple[GpuBudget, ...]:
        return tuple(self.hardware.gpus[place] for place in sorted(self._ranked[:count]))

    def _on_each(self, tried: Callable[[Sequence[GpuBudget]], Choice | None], context: int) -> Choice | None:
        if not self.hardware.gpus:
            return tried(())
        return self._on_fewest(tried, context, len(self._ranked))

    def _on_fewest(
        self, tried: Callable[[Sequence[GpuBudget]], Choice | None], context: int, most: int
    ) -> Choice | None:
        """The first that holds it, from the fewest cards that have the room at all (04 §9)."""
        alone = self.at(self._best(1), context, self.asked.slots)
        needed = sum(size for name, size in _needed(alone.fit).items() if name != HOST)
        found = select_cards(needed, self.hardware.gpus, usable=self._usable)
        # Fewer slots, or a device that computes less, may need less than this.
        first = 1 if found is None or len(found) == 1 else len(found)
        if found is None and not self.asked.may_use_fewer_slots:
            return None
        places = (tried(self._best(count)) for count in range(min(first, most), most + 1))
        return next((choice for choice in places if choice is not None), None)

    def _on_empty(self, tried: Choice) -> bool:
        """Whether the devices of a plan could hold it if nothing were on them."""
        sizes = budgets(emptied(self.hardware))
        return all(need <= sizes.get(name, need) for name, need in _needed(tried.fit).items())


@dataclass(frozen=True)
class _Place:
    """One set of devices, one context, one number of slots."""

    line: LineSettings
    model: ModelMemory
    hardware: Hardware
    context: int
    slots: int

    def choice(self, layers: int, experts: int) -> Choice:
        gpus = self.hardware.gpus
        on_gpus = layers if gpus else 0
        if len(gpus) > 1:
            return self._divided(on_gpus, experts)
        return self._chosen(self._plan(on_gpus, experts, ()), on_gpus, experts, ())

    def _divided(self, layers: int, experts: int) -> Choice:
        """Layers by what they weigh, in the room that everything else leaves on each device."""
        costs = self._costs(layers, experts)
        sizes = budgets(self.hardware)
        rooms = [sizes[gpu.name] for gpu in self.hardware.gpus]
        counts = split_layers(costs, rooms) or proportional(costs, rooms)
        fit = self._plan(layers, experts, counts)
        for _ in range(SPLITS):
            if fit.fits:
                break
            better = split_layers(costs, [max(0, room) for room in self._rooms(fit, costs, counts)])
            if better is None or better == counts:
                break
            counts = better
            fit = self._plan(layers, experts, counts)
        return self._without_idle(fit, layers, experts, counts)

    def _without_idle(self, fit: FitPlan, layers: int, experts: int, counts: tuple[int, ...]) -> Choice:
        """A device that gets no layer is none of this launch."""
        used = tuple(gpu for gpu, count in zip(self.hardware.gpus, counts, strict=True) if count)
        if len(used) == len(self.hardware.gpus) or not used:
            return self._chosen(fit, layers, experts, counts)
        return replace(self, hardware=replace(self.hardware, gpus=used)).choice(layers, experts)

    def _rooms(self, fit: FitPlan, costs: Sequence[int], counts: Sequence[int]) -> list[int]:
        """What each device has for layers: its budget without what is there besides layers."""
        sizes, start, rooms = budgets(self.hardware), 0, []
        for gpu, count in zip(self.hardware.gpus, counts, strict=True):
            besides = fit.needed_bytes(gpu.name) - sum(costs[start : start + count])
            rooms.append(sizes[gpu.name] - besides)
            start += count
        return rooms

    def _costs(self, layers: int, experts: int) -> tuple[int, ...]:
        model = self.model
        sizes = layer_bytes(model.shape, model.tensors, self._cache, self.extras, experts)
        return sizes[len(sizes) - layers :]

    @property
    def _cache(self) -> CacheSettings:
        return replace(self.line.cache, n_ctx=self.context, slots=self.slots)

    @property
    def extras(self) -> Extras:
        return extras_of(self.line, self.model)

    def _plan(self, layers: int, experts: int, counts: Sequence[int]) -> FitPlan:
        every = self.model.shape.layers + 1
        offload = Offload(
            None if layers >= every and self.hardware.gpus and not experts else layers,
            experts if self.hardware.gpus else 0,
            tuple(map(float, counts)),
        )
        model = self.model
        return plan_memory(model.shape, model.tensors, self._cache, self.hardware, offload, self.extras)

    def _chosen(self, fit: FitPlan, layers: int, experts: int, counts: tuple[int, ...]) -> Choice:
        return Choice(
            fit=fit,
            devices=tuple(gpu.name for gpu in self.hardware.gpus),
            context=self.context,
            slots=self.slots,
            gpu_layers=layers,
            all_layers=self.model.shape.layers + 1,
            cpu_experts=experts if self.hardware.gpus else 0,
            shares=counts,
        )


def _if_fits(choice: Choice) -> Choice | None:
    return choice if choice.fit.fits is not False else None


def _needed(fit: FitPlan) -> dict[str, int]:
    return {name: fit.needed_bytes(name) for name in fit.total_bytes}


def _slack(fit: FitPlan) -> int:
    """Bytes that are left where there is the least room; below 0 where something is too full."""
    return min((size - fit.needed_bytes(name) for name, size in fit.budget_bytes.items()), default=0)

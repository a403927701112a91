"""The memory plan of a launch that leaves its placement to the engine's own fit step, or to its user.

Pure; called by planning.launch_delegated. Says beforehand, with reasons, what the engine can keep. Without
GPUs it may shorten an automatic context; with them it shortens first, then moves layers and experts to host
memory. An asked context is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from framework.planning.line_settings import LineSettings
from framework.planning.memory.budget import budgets
from framework.planning.memory.context_fit import bisect
from framework.planning.memory.drafter import Drafter
from framework.planning.memory.fit import Extras, largest_context, plan_memory
from framework.planning.memory.placement import HOST
from framework.planning.memory.remedies import Variant, remedies
from framework.planning.memory.row_split import divided_by_rows, main_alone
from framework.planning.memory.settings import GpuBudget, Hardware, Offload
from framework.planning.memory.shape import MOST_LAYERS, ModelShape
from framework.planning.memory.tensor_table import TensorTable
from framework.planning.memory_reasons import (
    context_fitted,
    does_not_fit,
    layers_delegated,
    memory_may_grow,
    model_exceeds_memory,
    planning_fault,
    slot_context_small,
)
from framework.values.plain_text import brief
from framework.values.plan import FitPlan, Remedy
from framework.values.reason import Reason

# The gate of experts is there in every layer that has any.
EXPERT_GATE = "ffn_gate_inp"


@dataclass(frozen=True)
class ModelMemory:
    """What memory planning knows of a model and of what is loaded beside it."""

    shape: ModelShape
    tensors: TensorTable
    projector_bytes: int = 0
    adapter_bytes: int = 0
    drafter: Drafter | None = None
    """The separate drafter of the launch; None where there is none, or its file says too little."""
    drafter_bytes: int = 0
    """Size of its file, which is known of some that say too little."""
    variants: Sequence[Variant] = ()
    """Other quantisations that can be had instead."""


@dataclass(frozen=True)
class LaunchMemory:
    """The plan, and why it is not what was asked for."""

    fit: FitPlan
    reasons: tuple[Reason, ...] = ()


def plan_launch_memory(line: LineSettings, model: ModelMemory, hardware: Hardware) -> LaunchMemory:
    """Plan one launch. With nothing known to plan by, the plan is empty and a reason says why."""
    if why := why_unplanned(line, model):
        return unplanned(why)
    trained = model.shape.context_length or 0
    found = _Search(line, model, hardware, line.cache.n_ctx or trained).result()
    slow = model_exceeds_memory(found.fit, hardware)
    told = (*found.reasons, slow, *notes_on(found.fit))
    return replace(found, reasons=tuple(reason for reason in told if reason is not None))


def extras_of(line: LineSettings, model: ModelMemory) -> Extras:
    """What the launch of a line carries besides the model."""
    return Extras(
        draft=line.draft,
        drafter=model.drafter,
        projector_bytes=model.projector_bytes,
        adapter_bytes=model.adapter_bytes,
        host=line.host,
    )


def why_unplanned(line: LineSettings, model: ModelMemory) -> str | None:
    """What keeps a launch from being planned."""
    if line.unplanned is not None:
        return f"{line.unplanned} puts weights where no rule of ours follows"
    if line.draft is not None and line.draft.kind == "model" and model.drafter is None:
        why = "its file cannot be read" if line.drafter else "the engine gets it from a hub"
        return f"the drafter of {brief(line.drafter_naming)} takes memory of its own, and {why}"
    if not (line.cache.n_ctx or model.shape.context_length):
        return "the model's header does not name the trained context"
    return None


def notes_on(fit: FitPlan) -> tuple[Reason, ...]:
    """What is worth knowing about the plan of a launch or an inspection, or about what was measured."""
    found = [memory_may_grow(fit)]
    if fit.context:
        found.append(slot_context_small(fit.context, fit.slots))
    return tuple(reason for reason in found if reason is not None)


def layer_fault(layers: int | None) -> str | None:
    """Why a model whose header names so many layers is not planned. Its shape leaves such a number out."""
    if (layers or 0) <= MOST_LAYERS:
        return None
    return f"the header names {layers} layers, and engines load {MOST_LAYERS} at most"


def unplanned(why: str) -> LaunchMemory:
    """An empty plan, and why nothing can be said."""
    return LaunchMemory(FitPlan(), (planning_fault(why),))


@dataclass(frozen=True)
class _Search:
    line: LineSettings
    model: ModelMemory
    hardware: Hardware
    asked: int
    """Tokens before anything is shortened."""

    def result(self) -> LaunchMemory:
        whole = self.plan(self.asked, self.whole_offload)
        if whole.fits is None:
            return LaunchMemory(whole)
        seen = self._seen_by_fit_step(whole)
        plan, context = whole, self.asked
        if self.line.may_shorten and not self._is_kept(whole, seen):
            context = self._shorter(seen)
            plan = self.plan(context, self.whole_offload)
        is_moved = self.line.may_move and bool(self.hardware.gpus) and not self._is_kept(plan, seen)
        if is_moved:
            plan = self.plan(context, self._moved(context, seen))
        notes = [context_fitted(self.asked, context)] if context < self.asked else []
        if plan.fits and not is_moved:
            return LaunchMemory(plan, tuple(notes))
        if is_moved:
            notes.append(layers_delegated(plan, self.model.shape.layers + 1))
        ways = self._remedies(context, seen if is_moved else self.hardware, moves=not is_moved)
        if not plan.fits:
            notes.append(does_not_fit(plan, ways, severity="warning"))
        return LaunchMemory(replace(plan, remedies=ways), tuple(notes))

    def plan(self, context: int, offload: Offload) -> FitPlan:
        cache = replace(self.line.cache, n_ctx=context)
        model = self.model
        if self.line.row_main is None or not self.hardware.gpus:
            return plan_memory(model.shape, model.tensors, cache, self.hardware, offload, self.extras)
        main = main_alone(self.hardware, self.line.row_main)
        on_main = plan_memory(model.shape, model.tensors, cache, main, offload, self.extras)
        return divided_by_rows(on_main, self.hardware, offload.split)

    def _seen_by_fit_step(self, whole: FitPlan) -> Hardware:
        """What the engine's fit step goes by: GPUs with a margin of its own and, only without any, all host
        memory, where it counts pages of the file and forgets weights that are rearranged."""
        hardware = self.hardware
        if hardware.gpus:
            reserves = {gpu.name: self._reserve_bytes(gpu) for gpu in hardware.gpus}
            return replace(hardware, reserves_bytes=reserves)
        weights = [line for line in whole.lines if line.label == "weights"]
        counted = sum(line.bytes if line.mapped else -line.bytes for line in weights)
        return replace(
            hardware,
            host_free_bytes=hardware.host_total_bytes,
            reserves_bytes={HOST: self.line.margin_bytes + counted},
        )

    def _reserve_bytes(self, gpu: GpuBudget) -> int:
        """What the margin asks for beyond the share that stays free anyway."""
        free = (1 - self.hardware.fill_fraction) * (gpu.total_bytes or gpu.free_bytes)
        return max(0, self.line.margin_bytes - int(free))

    @cached_property
    def extras(self) -> Extras:
        return extras_of(self.line, self.model)

    @property
    def whole_offload(self) -> Offload:
        """What the line says; without GPUs nothing can go to one."""
        asked = self.line.offload
        if not self.hardware.gpus:
            return replace(asked, gpu_layers=0, cpu_experts=0)
        experts = min(asked.cpu_experts, self.model.shape.layers)
        if experts and asked.gpu_layers is None:
            asked = replace(asked, gpu_layers=self.model.shape.layers + 1)  # all, as a number to be shown
        return replace(asked, cpu_experts=experts)

    def _remedies(self, context: int, hardware: Hardware, *, moves: bool) -> tuple[Remedy, ...]:
        """What the engine does by itself, moving layers, is no advice."""
        return remedies(
            self.model.shape,
            self.model.tensors,
            replace(self.line.cache, n_ctx=context),
            hardware,
            self.whole_offload,
            self.extras,
            self.model.variants,
            moves=moves,
        )

    def _shorter(self, seen: Hardware) -> int:
        """The longest context that fits, never less than the engine would go to."""
        least = min(self.line.least_context, self.asked)
        model, cache = self.model, replace(self.line.cache, n_ctx=self.asked)
        found = largest_context(model.shape, model.tensors, cache, seen, self.whole_offload, self.extras)
        if found.fits is None:
            return self.asked
        return max(found.context, least) if found.fits else least

    def _moved(self, context: int, seen: Hardware) -> Offload:
        """The fewest layers' experts in host memory that free the GPUs; where those of all do not, layers."""
        most = self.model.shape.layers + 1
        offload = replace(self.whole_offload, gpu_layers=most)

        def holds(moved: Offload) -> bool:
            return self._is_kept(self.plan(context, moved), seen)

        gates = [n for n, layer in enumerate(self.model.tensors.layers) if layer.has(EXPERT_GATE)]
        if gates:
            last = gates[-1] + 1
            kept = bisect(0, last, lambda count: holds(replace(offload, cpu_experts=last - count)))
            offload = replace(offload, cpu_experts=last - kept)
            if holds(offload):
                return offload
        layers = bisect(0, most, lambda count: holds(replace(offload, gpu_layers=count)))
        return replace(offload, gpu_layers=layers)

    def _is_kept(self, plan: FitPlan, seen: Hardware) -> bool:
        """Whether the fit step leaves a plan as it is. With GPUs it does not look at host memory."""
        available = budgets(seen)
        looked_at = [gpu.name for gpu in seen.gpus] or [HOST]
        return all(plan.needed_bytes(name) <= available[name] for name in looked_at if name in available)

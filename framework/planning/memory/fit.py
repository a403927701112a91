"""The memory plan of one launch: lines per device, budgets, and whether it fits (03 §1.2). Pure.

Called by planning.launch and by `paddock inspect`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from framework.planning.memory.architectures import MEASURED_ARCHITECTURES
from framework.planning.memory.budget import with_lines
from framework.planning.memory.compute_lines import OUTPUT, compute_lines
from framework.planning.memory.context_fit import SHORTEST, ContextFit, bisect
from framework.planning.memory.drafter import Beside, Drafter, drafter_lines, head_lines, rollback
from framework.planning.memory.host_memory import host_lines
from framework.planning.memory.kv_cache import kv_bytes_by_layer
from framework.planning.memory.placement import HOST, Placement, place
from framework.planning.memory.recurrent_state import state_bytes_by_layer
from framework.planning.memory.settings import (
    CELL_PADDING,
    CacheSettings,
    DraftPlan,
    Hardware,
    HostSettings,
    Offload,
)
from framework.planning.memory.shape import ModelShape
from framework.planning.memory.tensor_table import TensorTable
from framework.planning.memory.weight_lines import weight_lines
from framework.values.plan import Basis, FitPlan, MemoryLine

MIB = 1 << 20
# Context and libraries of the first GPU (03 §9.2); those of further ones are part of the share that stays
# free.
RUNTIME_BYTES = 320 * MIB
# Headers may claim anything, and sums of lines have to be written as numbers of 64 bits.
MOST_BYTES = 2**58
# A projector needs room to compute: so much of its size on top of it (03 §9.2).
PROJECTOR_COMPUTE = 0.4
# Backends with a fast host buffer of their own take weights from the file's pages, so nothing is rearranged.
WITHOUT_HOST_BUFFER = frozenset({"rpc", "other"})


HOST_DEFAULTS = HostSettings()


@dataclass(frozen=True)
class Extras:
    """What a launch carries besides the model."""

    draft: DraftPlan | None = None
    """None where no drafter and no head is engaged; n-gram speculation needs none."""
    drafter: Drafter | None = None
    projector_bytes: int = 0
    adapter_bytes: int = 0
    host: HostSettings = HOST_DEFAULTS


NO_EXTRAS = Extras()
EVERYTHING = Offload()


def plan_memory(
    shape: ModelShape,
    tensors: TensorTable,
    settings: CacheSettings,
    hardware: Hardware,
    offload: Offload = EVERYTHING,
    extras: Extras = NO_EXTRAS,
) -> FitPlan:
    """Lines of every device that the launch uses, in the engine's order, host memory last."""
    placement = place(shape.layers, offload, hardware.gpus)
    repack = settings.repack and all(gpu.backend in WITHOUT_HOST_BUFFER for gpu in hardware.gpus)
    beside = Beside(hardware.gpus, offload.split, is_mapped=extras.host.mapped, may_repack=repack)
    lines = [
        *weight_lines(shape, tensors, placement, mapped=extras.host.mapped, repack=repack),
        *_cache_lines(shape, settings, placement, rollback(extras.draft, shape.architecture)),
        *compute_lines(shape, tensors, settings, placement, hardware.gpus),
        *_extra_lines(shape, tensors, settings, placement, beside, extras),
        *host_lines(shape, settings, extras.host),
    ]
    lines = _with_one_output(lines)
    lines = [line if line.bytes <= MOST_BYTES else replace(line, bytes=MOST_BYTES) for line in lines]
    order = {name: rank for rank, name in enumerate(gpu.name for gpu in hardware.gpus)}
    lines.sort(key=lambda line: order.get(line.device, len(order)))  # stable: labels stay as they came
    plan = FitPlan(
        context=settings.n_ctx,
        slots=settings.slots,
        cache_types=(settings.key_type, settings.value_type),
        gpu_layers=offload.gpu_layers,
        cpu_experts=offload.cpu_experts,
    )
    return with_lines(plan, lines, hardware)


def largest_context(
    shape: ModelShape,
    tensors: TensorTable,
    settings: CacheSettings,
    hardware: Hardware,
    offload: Offload = EVERYTHING,
    extras: Extras = NO_EXTRAS,
) -> ContextFit:
    """The longest context up to `settings.n_ctx` whose plan fits, in whole blocks of cells.

    Where nothing fits, the shortest context that is ever tried, with `fits` false; None where the caches
    cannot be sized or no budget is known.
    """
    requested = settings.n_ctx

    def plan(context: int) -> FitPlan:
        return plan_memory(shape, tensors, replace(settings, n_ctx=context), hardware, offload, extras)

    whole = plan(requested)
    if whole.fits is None or not (shape.estimable or shape.recurrent_layers):
        return ContextFit(requested, None)
    if whole.fits:
        return _context_fit(whole)
    low = min(SHORTEST, requested)
    blocks = bisect(
        low // CELL_PADDING, requested // CELL_PADDING, lambda count: bool(plan(count * CELL_PADDING).fits)
    )
    return _context_fit(plan(min(max(low, blocks * CELL_PADDING), requested)))


def _context_fit(plan: FitPlan) -> ContextFit:
    """A plan's answer, for the device that has the least room left."""
    tightest = min(
        plan.budget_bytes, key=lambda device: plan.budget_bytes[device] - plan.needed_bytes(device)
    )
    used, budget = plan.needed_bytes(tightest), plan.budget_bytes[tightest]
    return ContextFit(plan.context or 0, plan.fits, used, budget)


def _with_one_output(lines: Sequence[MemoryLine]) -> list[MemoryLine]:
    """Room for the logits of a drafter is told with that of its model."""
    left = sum(line.bytes for line in lines if line.label == OUTPUT)
    told = []
    for line in lines:
        if line.label != OUTPUT:
            told.append(line)
        elif left:
            told.append(replace(line, bytes=left))
            left = 0
    return told


def _cache_lines(
    shape: ModelShape, settings: CacheSettings, placement: Placement, kept_states: int
) -> list[MemoryLine]:
    known = shape.architecture in MEASURED_ARCHITECTURES
    unmasked = bool(shape.sliding_window) and shape.swa_mask is None and not known
    basis: Basis = "computed" if known and not unmasked else "assumed"
    caches = kv_bytes_by_layer(shape, settings)
    states = state_bytes_by_layer(shape, settings.slots, kept_states)
    lines = []
    for label, by_layer in (("kv", caches), ("recurrent_state", states)):
        sizes: Counter[str] = Counter()
        for layer, size in by_layer.items():
            sizes[placement.device(layer) if settings.kv_on_gpu else HOST] += size
        lines += [MemoryLine(device, label, size, basis) for device, size in sizes.items()]
    return lines


def _extra_lines(
    shape: ModelShape,
    table: TensorTable,
    settings: CacheSettings,
    placement: Placement,
    beside: Beside,
    extras: Extras,
) -> list[MemoryLine]:
    first = next((name for name in placement.devices if name != HOST), HOST)
    lines = []
    if extras.projector_bytes:
        size = extras.projector_bytes + int(extras.projector_bytes * PROJECTOR_COMPUTE)
        lines.append(MemoryLine(first, "projector", size, "assumed"))
    if extras.adapter_bytes:
        lines.append(MemoryLine(first, "adapter", extras.adapter_bytes, "computed"))
    if extras.draft is not None and extras.draft.kind == "head":
        lines += head_lines(shape, table, settings, extras.draft, placement)
    elif extras.draft is not None and extras.drafter is not None:
        lines += drafter_lines(extras.drafter, settings, extras.draft, beside)
    if first != HOST and any(gpu.name == first and gpu.backend != "rpc" for gpu in beside.gpus):
        lines.append(MemoryLine(first, "runtime", RUNTIME_BYTES, "assumed"))
    return lines

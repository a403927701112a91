"""What `paddock inspect` and the page of a file show: facts, companions, and the memory a launch would take.

Blocks while files are read; call it in a worker thread.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from framework.api.inspect_notes import InspectSettings, setting_notes
from framework.models.companions import Companions
from framework.models.facts import FactsReader, ModelFacts
from framework.planning.launch_memory import LaunchMemory, layer_fault, notes_on, unplanned
from framework.planning.memory.fit import plan_memory
from framework.planning.memory.remedies import remedies
from framework.planning.memory.settings import MICRO_BATCH, CacheSettings, GpuBudget, Hardware, Offload
from framework.planning.memory.shape import shape_of
from framework.planning.memory.tensor_table import table_of
from framework.planning.memory_reasons import model_exceeds_memory
from framework.planning.pool_hardware import backend_of, gpu_budget
from framework.values.device import HOST_NAME, Device
from framework.values.plan import FitPlan
from framework.values.reason import Reason

log = logging.getLogger(__name__)

# Only for a file that names no trained context; llama-server has no better answer either.
LEAST_CONTEXT = 4096


@dataclass(frozen=True)
class Inspection:
    """Everything about one model file."""

    facts: ModelFacts
    companions: Companions
    memory: FitPlan
    memory_reasons: tuple[Reason, ...] = ()
    """What is odd about the launch that memory is for, or why nothing can be said about it."""

    @property
    def file_reasons(self) -> tuple[Reason, ...]:
        """What is worth knowing about the file and what stands beside it."""
        return (*self.facts.files.notes, *self.companions.reasons)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """All that is worth knowing."""
        return (*self.file_reasons, *self.memory_reasons)


def inspect_file(
    path: Path, settings: InspectSettings, reader: FactsReader, devices: Sequence[Device] = ()
) -> Inspection:
    """Read the model that `path` belongs to. Raises `Refused` for files that no engine could load."""
    facts = reader.read(path, model_id=path.stem)
    memory = _memory(facts, settings, devices)
    return Inspection(facts, reader.companions(facts), memory.fit, memory.reasons)


def _memory(facts: ModelFacts, settings: InspectSettings, devices: Sequence[Device]) -> LaunchMemory:
    """The estimate, or why there is none: a header may say anything, and its other facts are still worth
    showing."""
    if fault := layer_fault(facts.header.n_layers):
        return unplanned(fault)
    try:
        plan = estimate_memory(facts, settings, devices)
        slow = model_exceeds_memory(plan, _hardware(settings.device, devices))
        odd = setting_notes(settings, facts.header.context_length, devices)
        return LaunchMemory(plan, (*odd, *([slow] if slow else []), *notes_on(plan)))
    except Exception:
        log.exception("memory of %s cannot be planned", facts.files.main)
        return unplanned("planning it failed; the log has the details")


def estimate_memory(facts: ModelFacts, settings: InspectSettings, devices: Sequence[Device] = ()) -> FitPlan:
    """Memory by device of a launch with these settings, without speculation. Without a device everything is
    in host memory.

    `devices` are those that this machine has: whether it fits is only said of them. Any other name stands for
    a device that is large enough.
    """
    cache = CacheSettings(
        n_ctx=settings.context or facts.header.context_length or LEAST_CONTEXT,
        slots=settings.slots,
        key_type=settings.cache_types[0],
        value_type=settings.cache_types[1],
        unified=True if settings.unified is None else settings.unified,
        swa_full=settings.swa_full,
        ubatch=settings.ubatch or MICRO_BATCH,
        flash_attention=settings.flash_attn,
    )
    hardware = _hardware(settings.device, devices)
    offload = Offload(gpu_layers=settings.gpu_layers if hardware.gpus else 0)
    shape, table = shape_of(facts.header), table_of(facts.tensors)
    plan = plan_memory(shape, table, cache, hardware, offload)
    known = {device.name for device in devices}
    if not set(plan.budget_bytes) <= known:
        budgets = {name: budget for name, budget in plan.budget_bytes.items() if name in known}
        return replace(plan, budget_bytes=budgets, fits=None)
    if plan.fits is not False:
        return plan
    return replace(plan, remedies=remedies(shape, table, cache, hardware, offload))


def _hardware(name: str | None, devices: Sequence[Device]) -> Hardware:
    """The device of this name, if one was named, and host memory."""
    by_name = {device.name: device for device in devices}
    host = by_name.get(HOST_NAME)
    gpus: tuple[GpuBudget, ...] = ()
    if name is not None and name != HOST_NAME:
        device = by_name.get(name)
        gpus = (gpu_budget(device) if device else GpuBudget(name, 0, backend=backend_of(name)),)
    return Hardware(
        gpus=gpus,
        host_free_bytes=host.free_bytes if host else 0,
        host_total_bytes=host.total_bytes if host else 0,
    )

"""What `paddock inspect` and the page of a file show: facts, companions, and the memory a launch would take.

Blocks while files are read; call it in a worker thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from framework.models.companions import Companions
from framework.models.facts import FactsReader, ModelFacts
from framework.planning.memory import (
    CacheSettings,
    GpuBudget,
    Hardware,
    Offload,
    plan_memory,
    shape_of,
    table_of,
)
from framework.planning.memory.settings import MICRO_BATCH
from framework.values.plan import FitPlan

# Only for a file that names no trained context; llama-server has no better answer either.
LEAST_CONTEXT = 4096


@dataclass(frozen=True)
class InspectSettings:
    """The launch that memory is worked out for. None leaves a setting to the engine's default."""

    context: int | None = None
    """Tokens of all slots together; the trained context by default."""
    slots: int = 1
    cache_types: tuple[str, str] = ("f16", "f16")
    """K and V."""
    ubatch: int | None = None
    """Tokens."""
    unified: bool | None = None
    flash_attn: bool = True
    swa_full: bool = False
    gpu_layers: int | None = None
    device: str | None = None


@dataclass(frozen=True)
class Inspection:
    """Everything about one model file."""

    facts: ModelFacts
    companions: Companions
    memory: FitPlan


def inspect_file(path: Path, settings: InspectSettings, reader: FactsReader) -> Inspection:
    """Read the model that `path` belongs to. Raises `Refused` for files that no engine could load."""
    facts = reader.read(path, model_id=path.stem)
    return Inspection(facts, reader.companions(facts), estimate_memory(facts, settings))


def estimate_memory(facts: ModelFacts, settings: InspectSettings) -> FitPlan:
    """Memory by device of a launch with these settings. Without a device everything is in host memory."""
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
    gpus = (GpuBudget(settings.device, free_bytes=0),) if settings.device else ()
    offload = Offload(gpu_layers=settings.gpu_layers if gpus else 0)
    hardware = Hardware(gpus=gpus)
    return plan_memory(shape_of(facts.header), table_of(facts.tensors), cache, hardware, offload)

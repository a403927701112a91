"""What `paddock inspect` and the page of a file show: facts, companions, and the memory a launch would take.

Blocks while files are read; call it in a worker thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from framework.models.companions import Companions
from framework.models.facts import FactsReader, ModelFacts
from framework.values.plan import FitPlan


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
    """Memory by device of a launch with these settings; without lines where it cannot be said."""
    del facts, settings
    return FitPlan()

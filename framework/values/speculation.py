"""What a decision about speculation is made of (05 §0, §3). Values only; made by runtime.planner."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from framework.values.engine import Capabilities
from framework.values.reason import Reason
from framework.values.request import SpecPolicy

DrafterKind = Literal["mtp", "eagle3", "dflash", "plain"]


@dataclass(frozen=True)
class SpecFacts:
    """What is known about the model and the drafter that was found for it."""

    model_id: str = ""
    """What the model calls itself: its repository, else the stem of its file."""
    file_name: str = ""
    """Base name of the main file."""
    header_ok: bool = True
    nextn_layers: int = 0
    """Layers of an embedded head, 0 for none."""
    kv_lora_rank: int | None = None
    """Set for models with latent attention (MLA)."""
    params_b: float | None = None
    """Billions of parameters by name or size label (02 §3.12); None is not known."""
    drafter: Path | None = None
    """A separate drafter that was checked against the model."""
    drafter_kind: DrafterKind | None = None
    drafter_reasons: tuple[Reason, ...] = ()
    """Why there is none, or not the one that was named."""


NO_FACTS = SpecFacts()


@dataclass(frozen=True)
class SpecInputs:
    """All that a decision depends on."""

    policy: SpecPolicy
    facts: SpecFacts
    caps: Capabilities
    args: tuple[str, ...] = ()
    """The model's extra arguments, normalised."""
    is_accelerated: bool = False
    """Decoding runs on a GPU (05 §3.2)."""
    is_native: bool = False
    withheld: Reason | None = None
    """Why drafting is switched off for now (05 §11.4)."""

"""What a decision about speculation is made of (05 §0, §3), and what its types are. Values only; made by
runtime.planner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from framework.values.engine import Capabilities
from framework.values.reason import Reason
from framework.values.request import SpecPolicy

DrafterKind = Literal["mtp", "eagle3", "dflash", "plain"]
# Types of a head, and those that a separate model drafts as builds before the renaming call them (14 §2);
# since then all of both begin alike.
MTP_TYPES = frozenset({"mtp", "draft-mtp"})
DRAFT_MODEL_TYPES = frozenset({"draft", "eagle3", "dflash"})
DRAFT_PREFIX = "draft-"


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


def drafts_by_model(running: str | None) -> bool:
    """Whether one of the types, separated by commas, has a head or another model draft; n-grams have none."""
    names = [part.strip() for part in (running or "").split(",")]
    return not MTP_TYPES.isdisjoint(names) or needs_drafter(names)


def needs_drafter(types: Iterable[str]) -> bool:
    """Whether one of the types has a separate model draft; that of a head only may."""
    return any(
        name in DRAFT_MODEL_TYPES or (name.startswith(DRAFT_PREFIX) and name not in MTP_TYPES)
        for name in types
    )

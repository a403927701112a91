"""What a model brings for drafting: an embedded head, a drafter, or only a name that promises one (05 §5).

Pure; called by decide. Names are those of the model and of its main file, never of folders.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.models.file_names import names_gemma_4
from framework.values.request import SpecPolicy
from framework.values.speculation import SpecFacts

HEAD_MARK = "-mtp"


@dataclass(frozen=True)
class Detected:
    """What the gates of 05 §6.1 ask for."""

    has_head: bool
    has_head_drafter: bool
    """A separate drafter that works as a head does."""
    is_capable: bool
    """Multi-token prediction can be tried."""
    is_drafter_missing: bool
    """The family drafts with a separate file, and it is not here."""
    is_too_small: bool
    is_latent: bool
    """Its head would need the caches of latent attention twice; `auto` leaves it alone."""
    promises_head: bool
    """The name says that there is a head, and the header says that there is none."""


def detect(policy: SpecPolicy, facts: SpecFacts) -> Detected:
    """Gates for one model. A drafter of another kind is none here: the engine refuses it as a head."""
    has_head = facts.nextn_layers > 0
    has_drafter = facts.drafter is not None and facts.drafter_kind == "mtp"
    is_family = is_gemma_4(facts)
    unread_name = not facts.header_ok and names_head(facts)
    small = facts.params_b is not None and facts.params_b < policy.min_head_params_b
    is_capable = has_head or has_drafter or is_family or unread_name
    return Detected(
        has_head=has_head,
        has_head_drafter=has_drafter,
        is_capable=is_capable,
        is_drafter_missing=is_family and not has_drafter and not has_head,
        is_too_small=small and not has_drafter,
        is_latent=has_head and facts.kv_lora_rank is not None and not has_drafter and not policy.allow_mla,
        promises_head=facts.header_ok and names_head(facts) and not is_capable,
    )


def is_gemma_4(facts: SpecFacts) -> bool:
    """Whether the model's id or file is of the family whose head is a file of its own."""
    return names_gemma_4(facts.model_id, facts.file_name)


def names_head(facts: SpecFacts) -> bool:
    """Whether a name promises multi-token prediction (02 §3.10)."""
    marked = any(HEAD_MARK in name.lower() for name in (facts.model_id, facts.file_name))
    return marked or is_gemma_4(facts)

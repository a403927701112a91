"""What an apply does to one model, with the field changes that caused it (07 §0, §3.13, 13 §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from framework.values.reason import Reason
from framework.values.request import Effect

ActionKind = Literal["none", "record", "live", "start", "replace", "stop"]


@dataclass(frozen=True)
class FieldChange:
    """One changed field, by its manifest name; `why` says why the effect is what it is."""

    field: str
    old: Any
    new: Any
    effect: Effect
    why: str


@dataclass(frozen=True)
class ModelAction:
    """One step of an apply. `replica` None means all replicas."""

    model: str
    replica: int | None
    kind: ActionKind
    changes: tuple[FieldChange, ...] = ()
    reasons: tuple[Reason, ...] = ()

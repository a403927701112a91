"""What is done to a model: by an apply (07 §0, §3.13, 13 §4), or when it is stopped (07 §5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from framework.values.reason import Reason
from framework.values.request import Effect

ActionKind = Literal["none", "record", "live", "start", "replace", "stop"]
StopMode = Literal["drain", "now", "kill"]
"""How a model is stopped (07 §5.1): requests finish, are cut off, or the process is killed at once."""
STOP_MODES: tuple[StopMode, ...] = get_args(StopMode)
"""The first is the one that hurts nobody."""


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

    @property
    def is_addition(self) -> bool:
        """Whether the model was not declared before."""
        return any(one.field == f"models.{self.model}" and one.old is None for one in self.changes)

"""Changes of single fields of a manifest, such as a remedy comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Owner = Literal["model", "policy"]
"""Whose table a field is in: the model's own, or that of the policy it uses, which others may share."""


@dataclass(frozen=True)
class FieldEdit:
    """One field, by its path below the table. `value` is as TOML has it; None takes the field out."""

    path: tuple[str, ...]
    value: Any
    owner: Owner = "model"


@dataclass(frozen=True)
class Way:
    """What could be changed for a model, in words, as edits of the manifest."""

    sentence: str
    edits: tuple[FieldEdit, ...]

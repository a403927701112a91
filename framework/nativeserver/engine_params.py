"""The core's EngineParams from options. Called by serving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Attributes that are lists of the core's own objects, and the type of an item.
LISTS = {
    "loras": "LoraParams",
    "metadata_overrides": "MetadataOverride",
    "tensor_placements": "TensorPlacement",
}


def engine_params(module: Any, values: Mapping[str, Any]) -> Any:
    """An EngineParams with the attributes that `values` has.

    Items of lists are tuples of arguments; a mapping holds attributes of the part that has its name.
    """
    params = module.EngineParams()
    for name, value in values.items():
        if name in LISTS:
            kind = getattr(module, LISTS[name])
            setattr(params, name, [kind(*item) for item in value])
        else:
            _set(params, name, value)
    return params


def _set(params: Any, name: str, value: Any) -> None:
    """One attribute, or those of a part."""
    if isinstance(value, Mapping):
        part = getattr(params, name)
        for inner, inner_value in value.items():
            _set(part, inner, inner_value)
    else:
        setattr(params, name, value)

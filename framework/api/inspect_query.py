"""The settings of an inspection as the parameters of an address: those of `paddock inspect` (13 §3).

Called by the route and by the page of a file. Raises ApiError 400; what is left empty counts as absent.
"""

from __future__ import annotations

from collections.abc import Mapping

from framework.api.errors import ApiError
from framework.api.inputs import bad_value, one_of
from framework.api.inspect_notes import InspectSettings, value_cache_fault
from framework.manifest.number_values import LARGEST_BATCH, LARGEST_CONTEXT, MOST_SLOTS
from framework.values.cache_types import CACHE_TYPES
from framework.values.units_text import read_whole_number, whole_number_text

INSPECT_QUERY = (
    *("context", "slots", "kv_cache", "ubatch", "unified", "flash_attn", "swa_full", "offload", "device"),
)
# No model has more layers; a larger number means all of them anyway.
MOST_LAYERS = 65_536
LONGEST_DEVICE = 100
SWITCH = {"on": True, "off": False}


def read_settings(query: Mapping[str, str]) -> InspectSettings:
    """The settings that a query asks for."""
    settings = InspectSettings(
        context=_number(query, "context", 1, LARGEST_CONTEXT, "tokens"),
        slots=_number(query, "slots", 1, MOST_SLOTS) or 1,
        cache_types=_cache_types(query),
        ubatch=_number(query, "ubatch", 1, LARGEST_BATCH, "tokens"),
        unified=_switch(query, "unified"),
        flash_attn=_switch(query, "flash_attn") is not False,
        swa_full=_switch(query, "swa_full") is True,
        gpu_layers=_number(query, "offload", 0, MOST_LAYERS),
        device=_device(query),
    )
    if fault := value_cache_fault(settings):
        raise ApiError(400, "invalid_body", f"kv_cache: {fault}.", param="kv_cache")
    return settings


def _number(query: Mapping[str, str], name: str, low: int, high: int, unit: str = "") -> int | None:
    text = query.get(name, "").strip()
    if not text:
        return None
    if (number := read_whole_number(text, low, high)) is not None:
        return number
    raise bad_value(name, text, whole_number_text(low, high, unit))


def _switch(query: Mapping[str, str], name: str) -> bool | None:
    text = query.get(name, "")
    return SWITCH[one_of(name, text, SWITCH)] if text else None


def _cache_types(query: Mapping[str, str]) -> tuple[str, str]:
    """`q8_0` for both, or `q8_0:f16` for K and V."""
    key, _, value = query.get("kv_cache", "").partition(":")
    default, _ = InspectSettings().cache_types
    first = one_of("kv_cache", key or default, CACHE_TYPES)
    return first, one_of("kv_cache", value or first, CACHE_TYPES)


def _device(query: Mapping[str, str]) -> str | None:
    text = query.get("device", "").strip()
    if len(text) > LONGEST_DEVICE or not text.isprintable():
        raise bad_value("device", text, f"the name of a device, at most {LONGEST_DEVICE} characters")
    return text or None

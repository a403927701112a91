"""What an installed `transformers` knows about the window pattern of an architecture (02 §5.5).

A source for swa_pattern, used where that package happens to be there; it is none of our dependencies, and
whatever goes wrong inside it means that it does not know.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import re
from collections.abc import Mapping
from typing import Any

from framework.models.swa_pattern import Entry, entry_of, entry_of_layer_types

log = logging.getLogger(__name__)

PATTERN = "sliding_window_pattern"
ASSIGNED = re.compile(PATTERN + r"\s*(?::[^=\n]{1,80})?=\s*(\d{1,6})\b")


def introspect(architecture: str) -> Entry | None:
    """The entry of an architecture, by the name that `transformers` has for it. May take seconds."""
    try:
        return _introspect(architecture)
    except Exception as error:  # noqa: BLE001 - foreign code, run with nothing but its own defaults
        log.debug("transformers does not say the window pattern of %s: %s", architecture, error)
        return None


def _introspect(architecture: str) -> Entry | None:
    mapping = _configurations()
    if architecture not in mapping:
        return None
    config_class = mapping[architecture]
    config = config_class()
    text = getattr(config, "text_config", None) or config
    period = getattr(text, PATTERN, None)
    if isinstance(period, int) and (entry := entry_of(period)) is not None:
        return entry
    if (entry := entry_of_layer_types(getattr(text, "layer_types", None))) is not None:
        return entry
    return _assigned(config_class) or _assigned(type(text))


def _configurations() -> Mapping[str, Any]:
    module = importlib.import_module("transformers.models.auto.configuration_auto")
    mapping: Mapping[str, Any] = module.CONFIG_MAPPING
    return mapping


def _assigned(config_class: type) -> int | None:
    """The first positive number that the source of a class gives the pattern."""
    numbers = (int(match[1]) for match in ASSIGNED.finditer(inspect.getsource(config_class)))
    return next((number for number in numbers if number > 0), None)

"""Types that keys and values of a cache may be stored in, under the names of the engine's flags (03 §2.2)."""

from __future__ import annotations

from collections.abc import Mapping

CACHE_TYPES: Mapping[str, float] = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q4_0": 18 / 32,
    "q4_1": 20 / 32,
    "iq4_nl": 18 / 32,
    "q5_0": 22 / 32,
    "q5_1": 24 / 32,
}
"""Bytes per element, in the order of the engine's help."""

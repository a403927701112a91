"""Element types of the key and value cache (15 §2)."""

from __future__ import annotations

from typing import Any

from framework.manifest.bad_value import BadValue
from framework.manifest.suggest import nearest

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
FLOAT_KV_TYPES = frozenset({"f32", "f16", "bf16"})


def parse_kv_type(value: Any) -> str | None:
    """A cache type written in any case; blank is the engine's own, None."""
    word = value.strip().lower() if isinstance(value, str) else None
    if word == "":
        return None
    if word not in KV_TYPES:
        near = nearest(word, KV_TYPES)
        meant = f'"{near}"' if near else ""
        raise BadValue("bad_kv_type", f"one of {', '.join(KV_TYPES)}", suggestion=meant)
    return word

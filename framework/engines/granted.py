"""What an engine can grant of a model's slots and cache types, before memory is planned (06 §6.5, 03 §2).

Pure; called by planning. Asked values stay in the request; each difference is a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from framework.engines import args
from framework.engines.user_flags import refused_flag
from framework.values.cache_types import CACHE_TYPES
from framework.values.engine import Capabilities
from framework.values.reason import Failure, Reason, Refused
from framework.values.request import ModelRequest

UNQUANTISED = frozenset({"f32", "f16", "bf16"})
UNIFIED_WORDS = {"-kvu": True, "--kv-unified": True, "-no-kvu": False, "--no-kv-unified": False}


@dataclass(frozen=True)
class Granted:
    """Slots and caches as they go on the line. A cache type of None leaves the axis to the engine (f16)."""

    slots: int
    unified: bool
    """Whether all slots share one cache of the whole context, the user's own flags counted in."""
    cache_types: tuple[str | None, str | None]
    flash_attn: str
    """`on`, `off` or `auto` as the engine will read it, the user's own flags counted in."""
    reasons: tuple[Reason, ...] = ()


def grant(request: ModelRequest, caps: Capabilities, env: Mapping[str, str]) -> Granted:
    """Grant what `caps` allows. `env` is the child's declared environment.

    Raises `Refused` (`user_flag_rejected`) for arguments of the user that this binary is known to die of.
    """
    if rejected := refused_flag(request.extra_args, caps):
        raise Refused(Failure(rejected))
    slots, slot_reason = _slots(request.slots, caps)
    flash = args.flash_attention(request.extra_args, request.flash_attn)
    cache_types, cache_reason = _cache_types(request, env, flash)
    return Granted(
        slots=slots,
        unified=_unified(request, caps, env, slots),
        cache_types=cache_types,
        flash_attn=flash,
        reasons=tuple(reason for reason in (slot_reason, cache_reason) if reason is not None),
    )


def _slots(asked: int, caps: Capabilities) -> tuple[int, Reason | None]:
    """More than one slot needs one shared cache: without it the engine cuts the context into pieces."""
    if asked <= 1 or caps.has("--kv-unified"):
        return max(asked, 1), None
    return 1, Reason(
        "slots_no_unified_kv",
        f"1 slot instead of {asked}: this engine has no --kv-unified, so each slot would only get "
        "a part of the context.",
        "Use a newer llama-server.",
        "warning",
        {"asked": asked, "granted": 1, "version": caps.version, "conclusive": caps.conclusive},
    )


def _unified(request: ModelRequest, caps: Capabilities, env: Mapping[str, str], slots: int) -> bool:
    """03 §2.7: variable, then the managed default, then the user's flags in order."""
    unified = env.get("LLAMA_ARG_KV_UNIFIED", "") in args.TRUE_WORDS
    if slots > 1 and caps.has("--kv-unified"):
        unified = True
    for arg in request.extra_args:
        unified = UNIFIED_WORDS.get(arg, unified)
    return unified


def _cache_types(
    request: ModelRequest, env: Mapping[str, str], flash: str
) -> tuple[tuple[str | None, str | None], Reason | None]:
    """Cache types per axis by 03 §2.5; the V cache stays unquantised where the engine would crash on it."""
    user_k = args.cache_type(request.extra_args, args.K_TYPE_FLAGS)
    user_v = args.cache_type(request.extra_args, args.V_TYPE_FLAGS)
    heavier = max((t for t in (user_k, user_v) if t), key=lambda t: CACHE_TYPES.get(t, 0.0), default=None)
    k, v = (_emittable(heavier or configured) for configured in request.cache_type)
    effective_v = user_v or v or env.get("LLAMA_ARG_CACHE_TYPE_V", "").strip().lower() or "f16"
    if flash != "off" or effective_v in UNQUANTISED:
        return (k, v), None
    if user_v is not None:
        raise Refused(Failure(_user_v_needs_flash(effective_v)))
    return (k, "f16"), _v_needs_flash(effective_v)


def _emittable(cache_type: str | None) -> str | None:
    lowered = (cache_type or "").strip().lower()
    return lowered if lowered in CACHE_TYPES else None


# llama.cpp: "V cache quantization requires flash_attn"; the builds seen crash on it, often without a line.
def _user_v_needs_flash(cache_type: str) -> Reason:
    return Reason(
        "user_flag_rejected",
        f"engine_args ask for a {cache_type} V cache with flash attention off; engines crash on that.",
        "Turn flash attention on, or use f16 for the V cache.",
        "error",
        {"flag": args.V_TYPE_FLAGS[1], "value": cache_type},
    )


def _v_needs_flash(cache_type: str) -> Reason:
    return Reason(
        "v_cache_f16",
        f"A V cache of type {cache_type} needs flash attention, which is off; f16 is used for it.",
        'Set flash_attention = "on", or choose f16 for v in kv_cache.',
        "warning",
        {"asked": cache_type, "granted": "f16"},
    )

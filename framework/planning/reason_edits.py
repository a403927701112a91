"""From a reason to what in the manifest could be changed about it. Pure.

Only edits that are certain to be what the remedy means; whether one helps is for the planner to say, which
the preview asks. An edit says which field of the model's own table, or of its policy's, gets which value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from framework.planning.memory.settings import CELL_PADDING, bytes_per_element
from framework.values.manifest_edit import FieldEdit, Way
from framework.values.plan import FitPlan, LaunchPlan, Remedy
from framework.values.reason import Reason
from framework.values.request import ModelRequest
from framework.values.units_text import counted, duration, tokens

# The milder one first. Below q4_0 nothing is worth proposing.
SMALLER_CACHES = ("q8_0", "q4_0")
ENGINE_CACHE = "f16"
SECONDS_PER_MINUTE = 60
Ways = Callable[[Reason, ModelRequest, LaunchPlan | None], Iterator[Way]]


def ways_for(reason: Reason, request: ModelRequest, plan: LaunchPlan | None) -> tuple[Way, ...]:
    """What could be changed about a reason, mildest first; nothing where no edit is certain.

    `plan` is what the model runs with, or would; None where planning refused it.
    """
    find = WAYS.get(reason.code)
    found: list[Way] = []
    for way in find(reason, request, plan) if find is not None else ():
        # Values may be tables, which have no hash.
        if way not in found:
            found.append(way)
    return tuple(found)


def _memory(reason: Reason, request: ModelRequest, plan: LaunchPlan | None) -> Iterator[Way]:
    """Less memory for the cache and beside it, so that more context, slots or layers have room."""
    yield from _smaller_caches(request, plan)
    yield from _from_remedies(request, FitPlan() if plan is None else plan.fit)
    if request.slots > 1:
        yield Way("Use 1 slot; further requests wait", (FieldEdit(("slots",), 1),))
    if plan is not None and plan.projector is not None:
        yield Way("Leave the projector out; it serves text only", (FieldEdit(("projector",), "none"),))
    if request.n_ctx:
        sentence = "Let the context be as long as memory allows"
        yield Way(sentence, (FieldEdit(("context",), "auto"),))


def _smaller_caches(request: ModelRequest, plan: LaunchPlan | None) -> Iterator[Way]:
    granted = (None, None) if plan is None else plan.cache_types
    key, value = (
        one or other or ENGINE_CACHE for one, other in zip(granted, request.cache_type, strict=True)
    )
    # Without flash attention no engine reads a quantised V cache.
    is_split = request.flash_attn == "off"
    heaviest = bytes_per_element(key) if is_split else max(bytes_per_element(key), bytes_per_element(value))
    for smaller in SMALLER_CACHES:
        if bytes_per_element(smaller) >= heaviest:
            continue
        wanted: Any = {"k": smaller, "v": value} if is_split else smaller
        yield Way(f"Store the cache as {smaller}", (FieldEdit(("kv_cache",), wanted),))


def _from_remedies(request: ModelRequest, fit: FitPlan) -> Iterator[Way]:
    """What the plan itself found, where the manifest has one field for it."""
    for remedy in fit.remedies:
        edit = _edit_of(remedy, request)
        if edit is not None:
            yield Way(remedy.sentence.partition(":")[0], (edit,))


def _edit_of(remedy: Remedy, request: ModelRequest) -> FieldEdit | None:
    if remedy.kind == "slots" and isinstance(remedy.to, int) and remedy.to > 1:
        return FieldEdit(("slots",), remedy.to)
    if remedy.kind == "context" and isinstance(remedy.to, int):
        return FieldEdit(("context",), remedy.to)
    return None


def _fewer_slots(reason: Reason, request: ModelRequest, plan: LaunchPlan | None) -> Iterator[Way]:
    context, slots = reason.evidence.get("context_tokens"), reason.evidence.get("slots")
    if not isinstance(context, int) or not isinstance(slots, int):
        return
    fewer = max(1, context // CELL_PADDING)
    if fewer < slots:
        yield Way(f"Use {counted(fewer, 'slot')} instead of {slots}", (FieldEdit(("slots",), fewer),))
    enough = slots * CELL_PADDING
    yield Way(f"Ask for a context of {tokens(enough)}", (FieldEdit(("context",), enough),))


def _trained_context(reason: Reason, request: ModelRequest, plan: LaunchPlan | None) -> Iterator[Way]:
    trained = reason.evidence.get("trained_tokens")
    if isinstance(trained, int) and trained > 0:
        yield Way(f"Ask for {tokens(trained)}, as it was trained", (FieldEdit(("context",), trained),))


def _granted_slots(reason: Reason, request: ModelRequest, plan: LaunchPlan | None) -> Iterator[Way]:
    yield from _smaller_caches(request, plan)
    granted = reason.evidence.get("granted")
    if isinstance(granted, int) and granted > 0:
        yield Way(f"Ask for the {counted(granted, 'slot')} there are", (FieldEdit(("slots",), granted),))


def _granted_experts(reason: Reason, request: ModelRequest, plan: LaunchPlan | None) -> Iterator[Way]:
    granted = reason.evidence.get("granted")
    path = ("placement", "cpu_experts")
    if isinstance(granted, int):
        yield Way(f"Ask for {counted(granted, 'layer')}", (FieldEdit(path, granted or None),))


def _longer_load(reason: Reason, request: ModelRequest, plan: LaunchPlan | None) -> Iterator[Way]:
    longer = 2 * request.live.load_timeout_s
    if longer >= SECONDS_PER_MINUTE and longer % SECONDS_PER_MINUTE == 0:
        text = f"{longer / SECONDS_PER_MINUTE:.0f}m"
    else:
        text = f"{longer:.0f}s"
    yield Way(f"Give a load {duration(longer)}", (FieldEdit(("timeout", "load"), text),))


def _set(sentence: str, path: tuple[str, ...], value: Any) -> Ways:
    """One fixed value of the model's own table."""
    way = Way(sentence, (FieldEdit(path, value),))
    return lambda _reason, _request, _plan: iter((way,))


def _policy(sentence: str, field: str, value: Any) -> Ways:
    """One fixed value of the policy that the model uses."""
    way = Way(sentence, (FieldEdit((field,), value, "policy"),))
    return lambda _reason, _request, _plan: iter((way,))


_LAYERS = _set("Divide layers over the devices", ("placement", "split"), "layer")
WAYS: Mapping[str, Ways] = {
    "context_fitted": _memory,
    "layers_delegated": _memory,
    "does_not_fit": _memory,
    "out_of_memory": _memory,
    "planned_smaller": _memory,
    "context_lowered": _memory,
    "slots_reduced": _granted_slots,
    "slot_context_small": _fewer_slots,
    "context_above_training": _trained_context,
    "cpu_experts_clamped": _granted_experts,
    "health_timeout": _longer_load,
    "tensor_dropped": _LAYERS,
    "tensor_unsupported": _LAYERS,
    "tensor_abort": _LAYERS,
    "kv_type_dropped": _LAYERS,
    "tensor_split_dropped": _set("Let the engine divide by itself", ("placement", "tensor_split"), None),
    "reasoning_not_granted": _set("Leave reasoning to the template", ("reasoning",), "auto"),
    "projector_not_found": _set("Serve text only, on purpose", ("projector",), "none"),
    "slot_state_unavailable": _set("Do not carry slots over, on purpose", ("slot_state",), "off"),
    "mla_mtp_disabled": _policy("Use the head all the same", "allow_mla", True),
    "head_too_small_forced": _policy("Let the mode be chosen", "mode", "auto"),
    "model_not_mtp": _policy("Let the mode be chosen", "mode", "auto"),
    "ngram_unsupported": _policy("Switch speculation off", "mode", "off"),
    "spec_default_unsupported": _policy("Look drafts up in the text", "mode", "ngram"),
    "ngram_settings_unused": _policy("Take the lengths out", "ngram", None),
}
"""Codes of docs/reasons.md whose remedy is an edit of the manifest."""

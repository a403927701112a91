"""What each rung of the recovery ladder gave up, as reasons (06 §12.6, 05 §9.1). Pure.

Called by runtime.rungs. Each says what was found, what the launch does without, and how to get it back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from framework.runtime.start_end import StartEnd, describe_exit
from framework.runtime.start_signs import (
    DRAFTING_WORDS,
    V_CACHE_NEEDS_FLASH,
    blames_memory,
    blames_projector,
    drafting_types,
    said_of_projector,
)
from framework.values.plain_text import brief
from framework.values.plan import Section
from framework.values.reason import Reason

NEWER_BUILD = "Install a newer llama.cpp build"


def flag_rejected(end: StartEnd, flag: str, section: Section) -> Reason:
    """A flag of ours that the launch can do without."""
    return Reason(
        "flag_rejected",
        f"This llama-server build refused {brief(flag)}; the engine was started without it.",
        f"{NEWER_BUILD} that knows the flag to get the feature back.",
        "warning",
        {"flag": flag, "section": section.name, **_evidence(end)},
    )


def tensor_abort(end: StartEnd) -> Reason:
    """Tensors of this model cannot be divided by this build."""
    return Reason(
        "tensor_abort",
        f"The engine ended with {describe_exit(end.exit_code)} where it divides tensors over devices: some"
        " models cannot be divided. Layers are divided instead.",
        f'{NEWER_BUILD}, or set models.{end.plan.request.id}.placement.split = "layer".',
        "warning",
        _evidence(end),
    )


def fit_on_retry(end: StartEnd) -> Reason:
    """The engine's own fit step took over from the plan."""
    return Reason(
        "fit_on_retry",
        f"With everything on its GPUs the engine {_ended(end)}; its own fit step decides now what goes"
        " there, which may move layers to host memory.",
        "Look at `paddock logs` for what the first try said; a shorter context leaves more room.",
        "warning",
        _evidence(end),
    )


def fit_off_retry(end: StartEnd) -> Reason:
    """The engine's own fit step broke."""
    return Reason(
        "fit_off_retry",
        f"With its own fit step the engine {_ended(end)}; it runs without that step, with everything on"
        " its GPUs.",
        f'{NEWER_BUILD}, or set placement.mode = "manual" with a number of layers.',
        "warning",
        _evidence(end),
    )


def flash_attn_off(end: StartEnd) -> Reason:
    """Flash attention was on when it broke."""
    return Reason(
        "flash_attn_off",
        f"With flash attention on the engine {_ended(end)}; it runs with flash attention off, which is slower"
        " and takes more memory.",
        f"{NEWER_BUILD} or driver; `paddock reload` tries flash attention again.",
        "warning",
        _evidence(end),
    )


def v_cache_f16(end: StartEnd) -> Reason:
    """A quantised V cache needs flash attention."""
    said = end.line_with(V_CACHE_NEEDS_FLASH)
    found = f" It said: {said}" if said else ""
    return Reason(
        "v_cache_f16",
        f"The V cache is f16 instead of a quantised type, which works only with flash attention.{found}",
        "Use flash attention to have it quantised; as f16 it takes about twice the memory of q8_0.",
        "warning",
        _evidence(end),
    )


def drafting_dropped(end: StartEnd, block: tuple[str, ...], before: StartEnd | None) -> Reason:
    """What was to draft kept the model from starting; `block` is what drafts instead. `before` is the end for
    which n-grams took its place, where this one is theirs."""
    first = before or end
    types = drafting_types(first.plan)
    what = ", ".join(types) or "a drafter"
    evidence = {"types": list(dict.fromkeys((*types, *drafting_types(end.plan)))), **_evidence(end)}
    now = "N-grams by --spec-default draft now." if block else "Nothing drafts now."
    if before is not None:
        now = f"With n-grams by --spec-default in its place it {_ended(end)}. {now}"
    name = first.unknown_architecture
    if name is not None:
        told = Reason(
            "binary_outdated",
            f"This llama-server build does not know the architecture '{name}' of what was to draft ({what});"
            f" the model was started without it. {now}",
            f"{NEWER_BUILD}.",
            "warning",
            {"architecture": name, **evidence},
        )
        return told if before is None else replace(told, code="runtime_error")
    said = first.line_with(*DRAFTING_WORDS)
    found = f" It said: {said}" if said else ""
    advice = f"See `paddock logs`; {NEWER_BUILD[0].lower()}{NEWER_BUILD[1:]}. `paddock reload` tries again."
    if blames_memory(first):
        advice = "Use a shorter context or fewer slots, to leave room for drafting; then `paddock reload`."
    return Reason(
        "runtime_error",
        f"The engine {_ended(first)} while it was to draft ({what}); it was started without. {now}{found}",
        advice,
        "warning",
        evidence,
    )


def projector_given_up(end: StartEnd) -> Reason:
    """The model serves text only."""
    remedy = f"Get the projector that belongs to the model, or {NEWER_BUILD[0].lower()}{NEWER_BUILD[1:]}."
    if blames_projector(end):
        return Reason(
            "projector_dropped",
            "The engine could not load the projector, so the model serves text only."
            f" It said: {said_of_projector(end)}",
            remedy,
            "warning",
            _evidence(end),
        )
    return Reason(
        "projector_suspected",
        f"With a projector the engine {_ended(end)}, and without it it started: the model serves text only.",
        remedy,
        "warning",
        _evidence(end),
    )


def _ended(end: StartEnd) -> str:
    ended = f"ended with {describe_exit(end.exit_code)}"
    if not end.was_healthy:
        return ended
    return f"{ended} at the first tokens" if end.exit_code is not None else "could not generate"


def _evidence(end: StartEnd) -> dict[str, Any]:
    return {"exit_code": end.exit_code, "signal": end.signal, "log": end.log_path}

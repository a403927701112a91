"""How wishes about thinking reach a chat template (02 §6.6-6.8). Pure.

Called by runtime.planner for what the manifest says. The answers are keyword arguments for the template; an
empty mapping leaves it to its own defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.models.file_names import billions
from framework.models.gguf_fields import GgufHeader
from framework.values.reason import Reason
from framework.values.reasoning import LADDER, TemplateCapabilities

TemplateArguments = Mapping[str, bool | str | float]

# Small models of these families lose more by thinking than they gain.
OFF_WHEN_SMALL = ("qwen3.5", "qwen3.6")
SMALL_BELOW_BILLIONS = 9
AUTO = "auto"
SWITCHED: Mapping[str, bool] = {"on": True, "off": False, "none": False}
USUAL_LEVELS = ("low", "medium", "high")
# This template wants a number, and takes a name that it cannot convert for "no thinking".
NUMERIC_ARCHITECTURE = "inkling"
NUMERIC_EFFORT = dict(zip(LADDER, (0.0, 0.1, 0.2, 0.7, 0.9, 0.99, 0.99), strict=True))


def launch_reasoning(
    wish: str, caps: TemplateCapabilities, model_id: str, header: GgufHeader
) -> tuple[TemplateArguments, tuple[Reason, ...]]:
    """What the manifest's `reasoning` means for a model as arguments, and what of it cannot be had."""
    architecture = header.architecture
    best = launch_arguments(caps, model_id, architecture=architecture, size_label=header.size_label)
    if wish == AUTO:
        return best, ()
    effort = wish if wish in LADDER else None
    wished = request_arguments(
        caps, enable_thinking=SWITCHED.get(wish), effort=effort, architecture=architecture
    )
    unmet = _unmet_wish(wish, caps)
    return {**best, **wished}, () if unmet is None else (unmet,)


def _unmet_wish(wish: str, caps: TemplateCapabilities) -> Reason | None:
    """Why a wish has no effect on a model; None where it has one, or needs none."""
    if caps.reasoning_always_on and wish in ("on", *LADDER[1:]):
        return None
    if not caps.supports_reasoning:
        return None if wish in ("off", "none") else _unmet(wish, "its chat template knows no reasoning")
    if caps.reasoning_always_on:
        return _unmet(wish, "its chat template has no switch for it")
    if caps.reasoning_style == "enable_thinking" and wish in LADDER[1:]:
        return _unmet(wish, "its chat template only knows on and off")
    known = (*SWITCHED, *caps.effort_levels)
    if caps.reasoning_style == "enable_thinking_effort" and wish not in known:
        return _unmet(wish, f"its chat template only knows {', '.join(caps.effort_levels)}")
    return None


def _unmet(wish: str, why: str) -> Reason:
    return Reason(
        "reasoning_not_granted",
        f"reasoning = {wish!r} has no effect on this model: {why}.",
        "Remove the line, or use a template that has it.",
        "warning",
        {"asked": wish},
    )


def launch_arguments(
    caps: TemplateCapabilities,
    model_id: str,
    *,
    architecture: str | None = None,
    size_label: str | None = None,
) -> TemplateArguments:
    """What a server is started with, so that clients who say nothing get the model's best behaviour."""
    arguments: dict[str, bool | str | float] = {}
    if caps.switchable:
        thinks = starts_thinking(model_id, size_label)
        if caps.reasoning_style == "reasoning_effort":
            arguments["reasoning_effort"] = numeric_effort("high" if thinks else "low", architecture)
        else:
            arguments["enable_thinking"] = thinks
    if caps.supports_preserve_thinking:
        arguments["preserve_thinking"] = False
    return arguments


def default_reasoning(caps: TemplateCapabilities, arguments: Mapping[str, Any]) -> str | None:
    """What a request gets that says nothing: `on`, `off`, a level or `always`; None of a model that never
    reasons. `arguments` are those that the template is always given."""
    if caps.reasoning_always_on:
        return "always"
    if not caps.supports_reasoning:
        return None
    enabled = arguments.get("enable_thinking", True)
    if caps.reasoning_style != "reasoning_effort":
        return "on" if enabled else "off"
    return str(arguments.get("reasoning_effort", "on"))


def starts_thinking(model_id: str, size_label: str | None = None) -> bool:
    """Whether a model thinks unless a request says otherwise."""
    if not any(family in model_id.lower() for family in OFF_WHEN_SMALL):
        return True
    size = billions(model_id, size_label)
    return size is None or size >= SMALL_BELOW_BILLIONS


def request_arguments(
    caps: TemplateCapabilities,
    *,
    enable_thinking: bool | None = None,
    effort: str | None = None,
    preserve: bool | None = None,
    architecture: str | None = None,
) -> TemplateArguments:
    """What one request asks for, in the words of the template."""
    arguments: dict[str, bool | str | float] = {}
    if caps.switchable:
        arguments.update(_switches(caps, enable_thinking, effort))
    if caps.supports_preserve_thinking and preserve is not None:
        arguments["preserve_thinking"] = preserve
    if isinstance(named := arguments.get("reasoning_effort"), str):
        arguments["reasoning_effort"] = numeric_effort(named, architecture)
    return arguments


def numeric_effort(effort: str, architecture: str | None) -> str | float:
    """A level as the number that one architecture wants; unknown names and other architectures keep it."""
    if (architecture or "").lower() != NUMERIC_ARCHITECTURE:
        return effort
    return NUMERIC_EFFORT.get(effort.strip().lower(), effort)


def _switches(caps: TemplateCapabilities, thinking: bool | None, effort: str | None) -> TemplateArguments:
    if caps.reasoning_style == "enable_thinking_effort":
        return _switch_and_effort(caps.effort_levels, thinking, effort)
    if caps.reasoning_style == "reasoning_effort":
        level = _nearest_level(effort, caps.effort_levels or USUAL_LEVELS) or _level_of_switch(thinking)
        return {} if level is None else {"reasoning_effort": level}
    return {} if thinking is None else {"enable_thinking": thinking}


def _switch_and_effort(
    levels: tuple[str, ...], thinking: bool | None, effort: str | None
) -> TemplateArguments:
    """The level goes out only where the template has it and thinking is not off."""
    off = thinking is False or effort == "none"
    named = effort in levels
    if thinking is None and effort != "none" and not named:
        return {}
    if off or not named or effort is None:
        return {"enable_thinking": not off}
    return {"enable_thinking": True, "reasoning_effort": effort}


def _nearest_level(effort: str | None, allowed: tuple[str, ...]) -> str | None:
    """The level itself, the next weaker allowed one, else the weakest; None for words off the ladder."""
    if effort not in LADDER:
        return None
    if effort == "none" or effort in allowed:
        return effort
    graded = [level for level in LADDER if level in allowed and level != "none"]
    weaker = [level for level in graded if LADDER.index(level) < LADDER.index(effort)]
    return weaker[-1] if weaker else graded[0]


def _level_of_switch(thinking: bool | None) -> str | None:
    return None if thinking is None else "high" if thinking else "low"

"""Flags of the group "loop guard": replies that repeat themselves are ended (11 §19)."""

from __future__ import annotations

from typing import Any

from framework.nativeserver.flags.flag import Flag
from framework.nativeserver.flags.knobs import knob
from framework.nativeserver.flags.values import Value, choice, whole

MODES = ("off", "stop", "force-close")
FLAG_NAMES = {
    "mode": "--reasoning-loop-guard",
    "min_reasoning_tokens": "--reasoning-loop-min-tokens",
    "window_tokens": "--reasoning-loop-window",
    "max_period": "--reasoning-loop-max-period",
    "min_repeated_coverage": "--reasoning-loop-min-coverage",
    "check_interval": "--reasoning-loop-check-interval",
    "interventions_max": "--reasoning-loop-interventions",
}
"""By the names that a request has for them."""
DEFAULTS = {
    "mode": "off",
    "min_reasoning_tokens": 512,
    "window_tokens": 384,
    "max_period": 96,
    "min_repeated_coverage": 192,
    "check_interval": 32,
    "interventions_max": 1,
}


def _rule(name: str, value: Value, text: str) -> Flag:
    default: Any = DEFAULTS[name]
    return knob(FLAG_NAMES[name], f"loop_guard.{name}", value, default, text)


FLAGS: tuple[Flag, ...] = (
    _rule("mode", choice(*MODES), "end a reply that repeats itself, or close its reasoning and go on"),
    _rule("min_reasoning_tokens", whole(0), "tokens of reasoning, or of text, before it looks"),
    _rule("window_tokens", whole(1), "latest tokens that it looks at"),
    _rule("max_period", whole(1), "longest stretch that repeats; at most a third of the window"),
    _rule("min_repeated_coverage", whole(1), "tokens that must be repetition"),
    _rule("check_interval", whole(1), "tokens between two looks"),
    _rule("interventions_max", whole(0), "times that reasoning is closed before a reply is ended"),
)

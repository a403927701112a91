"""Flags of the group "depth of drafts": how long drafts may be, judged by how they fare (11 §15-18)."""

from __future__ import annotations

from typing import Any

from framework.nativeserver.flags.flag import Flag
from framework.nativeserver.flags.knobs import knob
from framework.nativeserver.flags.values import Value, boolean, choice, number, whole

CONTROLLERS = ("profit", "fringe")
FRINGE_FLAGS = ("--spec-dm-fringe-min", "--spec-dm-fringe-max")
FRINGE_TARGETS = ("speculation.depth.fringe_min", "speculation.depth.fringe_max")
SHARE = number(0, 1)
MOST_SAMPLES = 64


def _rule(name: str, attribute: str, value: Value, default: Any, text: str) -> Flag:
    return knob(f"--spec-dm-{name}", f"speculation.depth.{attribute}", value, default, text)


FLAGS: tuple[Flag, ...] = (
    _rule("adaptive", "adaptive", Value("[on|off]", boolean), "on", "adapt the length of drafts"),
    _rule(
        "controller",
        "controller",
        choice(*CONTROLLERS),
        "profit",
        "what rules it: the tokens a second that are expected, or the acceptance of the deepest tokens",
    ),
    _rule("fringe-min", "fringe_min", SHARE, 0.3, "fringe: acceptance below which nothing is drafted"),
    _rule("fringe-max", "fringe_max", SHARE, 0.75, "fringe: acceptance from which drafts are longest"),
    _rule("fringe-window", "fringe_window", whole(1, 64), 4, "fringe: deepest positions that are looked at"),
    _rule("min-reach", "min_reach", whole(1, 64), 8, "fringe: drafts that a decision needs"),
    _rule("off-dwell", "off_dwell", whole(1), 2, "decisions in a row before drafting goes off"),
    _rule("probe-interval", "probe_interval", whole(1), 32, "cycles between two tries while it is off"),
    _rule("probe-fraction", "probe_fraction", number(0.01, 1), 0.25, "length of a try, against the longest"),
    _rule("explore-interval", "explore_interval", whole(1), 64, "drafts between two longer ones, as a try"),
    _rule("profit-min", "profit_min", number(0, 0.5), 0.05, "profit: gain below which nothing is drafted"),
    _rule("profit-raise", "raise_", SHARE, 0.02, "profit: gain that longer drafts must bring"),
    _rule("profit-lower", "lower", SHARE, 0.01, "profit: gain that shorter drafts must bring"),
    _rule("profit-ewma", "ewma", number(0.01, 1), 0.2, "profit: weight of the newest measurement"),
    _rule("profit-min-samples", "min_samples", whole(1, MOST_SAMPLES), 3, "profit: measurements it needs"),
    _rule("profit-warmup", "warmup", whole(0, MOST_SAMPLES), 4, "profit: drafts before it decides"),
    _rule(
        "profit-baseline-interval",
        "baseline_interval",
        whole(0, 4096),
        256,
        "profit: cycles between two without drafts, for comparison; 0 is never",
    ),
)

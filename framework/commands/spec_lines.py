"""Speculation on the terminal: asked, resolved, running, and what it brings. For `status` and `plan`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from framework.commands.output import print_table, say
from framework.values.speculation import drafts_by_model
from framework.values.units_text import count, percent

COLUMNS = ("MODEL", "ASKED", "RESOLVED", "RUNNING", "DEPTH", "DRAFTER", "DRAFTED", "ACCEPTED", "SPEED-UP")
DEPTH_SOURCES = {"policy": "by policy", "default": "by default"}
BY_ARGUMENTS = "engine_args"
# What each mode comes to where everything is there; `auto` takes what there is.
AS_ASKED = {
    "off": "none",
    "ngram": "ngram-mod",
    "ngram-simple": "ngram-simple",
    "mtp": "draft-mtp",
    "mtp+ngram": "draft-mtp",
    "draft": "draft-simple",
    "eagle3": "draft-eagle3",
    "dflash": "draft-dflash",
}
CHAIN = "mtp+ngram"
STOPPED, USER = "stopped", "user"


def print_speculation(models: list[dict[str, Any]]) -> None:
    """A line for each process of which there is more to say than the name of what drafts."""
    rows = [row for model in models for row in _rows(model)]
    if rows:
        say("")
        print_table(COLUMNS, rows)


def decision_text(told: dict[str, Any]) -> str | None:
    """`draft-mtp behind n-grams, depth 3 by default, drafter mtp-a.gguf`; None where nothing was decided."""
    if told["resolved"] is None:
        return None
    chain = " behind n-grams" if told["chained"] else ""
    parts = [f"{told['resolved']}{chain}"]
    if told["depth"] is not None:
        parts.append(f"depth {told['depth']} {DEPTH_SOURCES.get(told['depth_source'], '')}".rstrip())
    if told["drafter"] is not None:
        parts.append(f"drafter {_base_name(told['drafter'])}")
    return ", ".join(parts)


def is_as_asked(told: dict[str, Any]) -> bool:
    """Whether the mode came to what it names; `auto`, and one's own arguments, name nothing."""
    asked, resolved = told["asked"], told["resolved"]
    if resolved is None or asked not in AS_ASKED:
        return True
    return bool(resolved == AS_ASKED[asked] and (asked != CHAIN or told["chained"]))


def _rows(model: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    for instance in model["instances"]:
        told = instance["speculation"]
        # Once something else drafts than was resolved, depth and drafter of the plan say nothing.
        is_used = told["running"] in (None, told["resolved"]) or _drafts_by_arguments(told)
        if instance["state"] != STOPPED and _is_worth_a_line(told):
            yield (
                model["name"] + (f" replica {instance['replica']}" if instance["replica"] else ""),
                told["asked"] or BY_ARGUMENTS,
                told["resolved"],
                told["running"],
                told["depth"] if is_used else None,
                _base_name(told["drafter"]) if is_used and told["drafter"] else None,
                told["drafted"] and count(told["drafted"]),
                None if told["acceptance"] is None else percent(told["acceptance"]),
                _speedup(told["speedup"]),
            )


def _is_worth_a_line(told: dict[str, Any]) -> bool:
    facts = ("reason", "depth", "drafter", "acceptance", "speedup")
    if any(told[name] is not None for name in facts) or not is_as_asked(told):
        return True
    return told["running"] not in (None, told["resolved"])


def _drafts_by_arguments(told: dict[str, Any]) -> bool:
    """Whether one's own arguments are at work: what they resolve to is no type."""
    return told["resolved"] == USER and drafts_by_model(told["running"])


def _speedup(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}x"


def _base_name(drafter: str) -> str:
    """Of a file its name; a hub id stays whole."""
    path = PurePath(drafter)
    return path.name if path.is_absolute() else drafter

"""`paddock status`: what runs, loads, waits and failed, and why (13 §5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framework.commands.context import connect
from framework.commands.failure import OK
from framework.commands.moments import since_text
from framework.commands.options import JsonOption, ManifestOption, UrlOption
from framework.commands.output import print_json, print_reason, print_table, problem_text, say
from framework.commands.pool_lines import print_pools
from framework.commands.spec_lines import is_as_asked, print_speculation
from framework.commands.waiting import shown_state
from framework.values.units_text import size

STOPPED = "stopped"
COLUMNS = (
    "MODEL",
    "STATE",
    "SINCE",
    "PID",
    "PORT",
    "SLOTS",
    "CONTEXT",
    "SPECULATION",
    "TOKENS/S",
    "IN FLIGHT",
    "WAITING",
)


def command(manifest: ManifestOption = None, url: UrlOption = None, as_json: JsonOption = False) -> int:
    """Show what runs, loads, waits and failed, and why."""
    status = connect(manifest, url).get("/status")
    if as_json:
        print_json(status)
        return OK
    facts = status["manifest"]
    say(f"paddock {status['version']}, up {since_text(status['since_at'])}, {facts['path']}")
    for problem in (facts["error"] or {}).get("problems", []):
        say(problem_text(problem), "red")
    if facts["error"]:
        say(f"The file was not applied: what was loaded {since_text(facts['loaded_at'])} ago runs on.", "red")
    for problem in facts["warnings"]:
        say(f"warning: {problem_text(problem)}", "yellow")
    for notice in facts["notices"]:
        say(notice, "yellow")
    print_table(COLUMNS, [row for model in status["models"] for row in rows_of(model)])
    for model in status["models"]:
        print_reasons(model)
    print_speculation(status["models"])
    print_pools(status["pools"])
    return OK


def rows_of(model: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    """The lines of a model: one for each instance, or one that says that there is none."""
    waiting = model["queue"]["waiting"]
    if not model["instances"]:
        yield (model["name"], shown_state(model, model["state"]), *(None for _ in COLUMNS[2:-1]), waiting)
    for number, instance in enumerate(model["instances"]):
        name = model["name"] if number == 0 else f"  replica {instance['replica']}"
        yield (
            name,
            _state(model, instance),
            since_text(instance["since_at"]),
            instance["pid"],
            instance["port"],
            _slots(instance),
            _context(instance),
            _speculation(instance),
            _speed(instance["tokens_per_s"]["generation"]),
            instance["inflight"],
            waiting if number == 0 else None,
        )


def print_reasons(model: dict[str, Any]) -> None:
    """Why an instance failed, or differs from what was asked."""
    for instance in model["instances"]:
        plan = instance["plan"] or {}
        last_error = [instance["last_error"]] if instance["last_error"] else []
        told = [*last_error, *instance["drift"], *instance["degradations"], *_why_not(instance)]
        told += plan.get("reasons", [])
        if instance["state"] == STOPPED:
            # The rest is about a start that is over.
            told = last_error
        speculation = instance["speculation"]
        # A note explains what drafts in place of what was asked.
        notes = [] if is_as_asked(speculation) else speculation["notes"]
        for reason in {(reason["code"], reason["message"]): reason for reason in told}.values():
            if reason["severity"] != "info" or reason in notes:
                print_reason(reason, owner=model["name"])
    if verdict := model["speculation_yield"]["verdict"]:
        print_reason(verdict, owner=model["name"])


def _why_not(instance: dict[str, Any]) -> list[dict[str, Any]]:
    """Why drafting is not as it was wanted."""
    reason = instance["speculation"]["reason"]
    return [reason] if reason else []


def _state(model: dict[str, Any], instance: dict[str, Any]) -> str:
    text = shown_state(model, str(instance["state"]))
    progress = instance["progress"]
    if progress and progress["phase"] != "ready":
        loaded, total = size(progress["loaded_bytes"]), size(progress["total_bytes"])
        text += f" {progress['fraction']:.0%} ({loaded} of {total})"
    return f"{text}, replacing" if model["replacing"] else text


def _slots(instance: dict[str, Any]) -> str | None:
    running = instance["running"]
    if running is None:
        return None
    busy = sum(slot["state"] != "idle" for slot in instance["slots"])
    return f"{busy}/{running['slots']}"


def _context(instance: dict[str, Any]) -> int | None:
    running, plan = instance["running"], instance["plan"]
    if running is not None:
        return running["context"]  # type: ignore[no-any-return]
    is_planned = plan is not None and instance["state"] != STOPPED
    return plan["granted"]["context"] if is_planned else None


def _speculation(instance: dict[str, Any]) -> str | None:
    """As it runs, else as planned; of a stopped one neither."""
    told = instance["speculation"]
    planned = None if instance["state"] == STOPPED else told["resolved"]
    return told["running"] or planned


def _speed(tokens_per_s: float | None) -> str | None:
    return None if tokens_per_s is None else f"{tokens_per_s:.1f}"

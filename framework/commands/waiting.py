"""Wait until a command that was given to a model has come to its end, and show how far it is (07 §3.11, §5).

The server accepts a command at once; its events and the model's state tell how it went.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from framework.commands.client import ApiClient, model_path
from framework.commands.output import note
from framework.values.units_text import counted, size

POLL_S = 0.2
# A command acts within a turn of the server's loop; a model that is still idle after this was stopped again.
IDLE_LIMIT_S = 5.0
FAILED_KINDS = frozenset(
    {"refused", "start_failed", "crash_loop", "rolled_back", "replacement_failed", "unkillable"}
)
IDLE_STATES = frozenset({"stopped", "failed", "backoff"})
MOST_EVENTS = 1000

Command = Literal["load", "unload", "reload"]


@dataclass(frozen=True)
class Outcome:
    """How it ended. `reason` is that of 13 §1 when it failed and the server knows why."""

    ok: bool
    model: dict[str, Any]
    message: str
    reason: dict[str, Any] | None = None


def wait_for(
    client: ApiClient,
    name: str,
    command: Command,
    event_id: int,
    *,
    monotonic_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Ask until the command is done or has failed. The server limits how long a load may take."""
    began_s, shown = monotonic_s(), ""
    while True:
        model = client.get(model_path(name))
        query = {"model": model["name"], "since": event_id, "limit": MOST_EVENTS}
        events = client.get("/events", **query)["events"]
        outcome = judge(command, model, events, waited_s=monotonic_s() - began_s)
        if outcome is not None:
            return outcome
        now = describe(model)
        if now != shown:
            note(f"{name}: {now}")
            shown = now
        sleep(POLL_S)


def judge(
    command: Command, model: dict[str, Any], events: list[dict[str, Any]], *, waited_s: float
) -> Outcome | None:
    """The outcome, or None while it goes on. `events` are those of the model since the command."""
    failure = next((event for event in events if event["kind"] in FAILED_KINDS), None)
    if failure is not None:
        return Outcome(ok=False, model=model, message=failure["message"], reason=failure["reason"])
    state = model["state"]
    if command == "unload":
        gone = all(instance["pid"] is None for instance in model["instances"])
        return Outcome(ok=True, model=model, message="stopped") if gone and state == "stopped" else None
    if state == "ready" and not model["replacing"] and (command == "load" or _ready_again(events)):
        return Outcome(ok=True, model=model, message="ready")
    if state in IDLE_STATES and waited_s > IDLE_LIMIT_S:
        reason = next((i["last_error"] for i in model["instances"] if i["last_error"]), None)
        return Outcome(ok=False, model=model, message=f"it is {state}", reason=reason)
    return None


def describe(model: dict[str, Any]) -> str:
    """The state in words, with what it waits for."""
    instances = model["instances"]
    state = str(model["state"])
    for instance in instances:
        progress = instance["progress"]
        if instance["state"] in ("fetching", "starting") and progress and progress["total_bytes"]:
            # Steps of a tenth: one line each, not one per poll.
            tenths = int(progress["fraction"] * 10) * 10
            return f"{instance['state']}, {tenths} % of {size(progress['total_bytes'])}"
        if instance["state"] == "draining":
            return f"draining, {counted(instance['inflight'], 'request')} in flight"
    position = model["queue"]["position"]
    return state if position is None else f"{state}, number {position} of those that wait for memory"


def _ready_again(events: list[dict[str, Any]]) -> bool:
    return any(event["kind"] in ("ready", "replaced") for event in events)

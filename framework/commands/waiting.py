"""Wait until a command that was given to a model has come to its end, and show how far it is (07 §3.11, §5).

The server accepts a command at once; its events, the model's state and the queue for memory tell how it went.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from framework.commands.client import ApiClient, model_path
from framework.commands.output import note
from framework.values.units_text import counted, size

POLL_S = 0.2
# A command acts within a turn of the server's loop; a model that is still idle after this was stopped again,
# and one that still finds no room is not helped by what was on its way out when the command was given.
IDLE_LIMIT_S = 5.0
FAILED_KINDS = frozenset(
    {"refused", "start_failed", "crash_loop", "rolled_back", "replacement_failed", "unkillable"}
)
IDLE_STATES = frozenset({"stopped", "failed", "backoff"})
# While one replica is in one of these, what others wait for is not the end of the command.
COMING_STATES = frozenset({"fetching", "starting"})
WAITING_STATE = "planning"
MOST_EVENTS = 1000
STILL_THE_OLD_ONE = "the old process serves until it is replaced"
EARLIER = "ready, with the settings before the last edit"

Command = Literal["load", "unload", "reload", "replan"]


@dataclass(frozen=True)
class Outcome:
    """How it ended. `reason` is that of 13 §1 when it failed and the server knows why."""

    ok: bool
    model: dict[str, Any]
    message: str
    reason: dict[str, Any] | None = None
    stays_queued: bool = False
    """The server goes on looking for room, and loads the model once there is some."""


def wait_for(
    client: ApiClient,
    name: str,
    command: Command,
    event_id: int,
    *,
    monotonic_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Ask until the command is done, has failed, or waits for what nobody gives. The server limits how long a
    load may take."""
    began_s, shown = monotonic_s(), ("", "")
    while True:
        model = client.get(model_path(name))
        query = {"model": model["name"], "since": event_id, "limit": MOST_EVENTS}
        events = client.get("/events", **query)["events"]
        verdicts = _verdicts(client, model)
        outcome = judge(command, model, events, verdicts, waited_s=monotonic_s() - began_s)
        if outcome is not None:
            return outcome
        told = verdicts[0] if verdicts else None
        text = describe(model)
        if command in ("reload", "replan") and text == "ready":
            text = STILL_THE_OLD_ONE
        now = (text, told["code"] if told else "")
        # A line for each step: the numbers of a reason may change at every poll.
        if now != shown:
            note(f"{name}: {now[0]}" + (f": {told['message']}" if told else ""))
            shown = now
        sleep(POLL_S)


def judge(
    command: Command,
    model: dict[str, Any],
    events: list[dict[str, Any]],
    verdicts: Sequence[dict[str, Any]] = (),
    *,
    waited_s: float,
) -> Outcome | None:
    """The outcome, or None while it goes on. `events` are those of the model since the command, `verdicts`
    are why its replicas wait for memory."""
    failure = next((event for event in events if event["kind"] in FAILED_KINDS), None)
    if failure is not None:
        return Outcome(ok=False, model=model, message=failure["message"], reason=failure["reason"])
    state = model["state"]
    if command == "unload":
        gone = all(instance["pid"] is None for instance in model["instances"])
        return Outcome(ok=True, model=model, message="stopped") if gone and state == "stopped" else None
    replanned = [event for event in events if event["kind"] == "replanned"]
    if command == "replan" and replanned and not any(event["data"]["replaces"] for event in replanned):
        return Outcome(ok=True, model=model, message=replanned[-1]["message"])
    if state == "ready" and not model["replacing"] and (command == "load" or _ready_again(events)):
        # An instance that serves has an error only when a replacement came to nothing.
        is_earlier = any(instance["last_error"] for instance in model["instances"])
        return Outcome(ok=True, model=model, message=EARLIER if is_earlier else "ready")
    if _is_stuck(state, verdicts) and waited_s > IDLE_LIMIT_S:
        return Outcome(
            ok=False, model=model, message=verdicts[0]["message"], reason=verdicts[0], stays_queued=True
        )
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
    return state if position is None else f"{shown_state(model, state)}, number {position} in its pool"


def shown_state(model: dict[str, Any], state: str) -> str:
    """The state of a model or of an instance of it in words: planning may be waiting for memory."""
    waits = state == WAITING_STATE and model["queue"]["position"] is not None
    return "waiting for memory" if waits else state


def _is_stuck(state: str, verdicts: Sequence[dict[str, Any]]) -> bool:
    """Whether nobody makes room for any replica, and none is on its way."""
    hopeless = bool(verdicts) and all(reason["severity"] == "error" for reason in verdicts)
    return hopeless and state not in COMING_STATES


def _verdicts(client: ApiClient, model: dict[str, Any]) -> list[dict[str, Any]]:
    """Why the replicas of a model wait for memory, in the order of its pool; empty while none does."""
    if model["queue"]["position"] is None:
        return []
    pools = client.get("/status")["pools"]
    waiting = [one for pool in pools for one in pool["waiting"] if one["model"] == model["name"]]
    return [one["reason"] for one in waiting]


def _ready_again(events: list[dict[str, Any]]) -> bool:
    return any(event["kind"] in ("ready", "replaced") for event in events)

"""How a state looks and what an operator can do about it. Pure; nothing else knows words for states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from framework.dashboard.urls import model_url
from framework.values.action import StopMode
from framework.values.instance import ModelView, State

Tone = Literal["ok", "busy", "wait", "bad", "idle"]
Verb = Literal["load", "unload", "reload"]
Group = Literal["ready", "loading", "waiting", "failed", "stopped"]


@dataclass(frozen=True)
class Look:
    """A state in words: never colour alone (icon and label carry it too)."""

    key: str
    label: str
    meaning: str
    icon: str
    tone: Tone
    group: Group


@dataclass(frozen=True)
class Action:
    """A button. `main` marks the one that is most likely wanted."""

    verb: Verb
    label: str
    url: str
    main: bool


LOOKS: Mapping[State, Look] = {
    State.PENDING: Look(
        "pending", "Waiting to start", "Another start comes first.", "clock", "wait", "loading"
    ),
    State.FETCHING: Look(
        "fetching", "Fetching files", "Its files are found and checked.", "spin", "busy", "loading"
    ),
    State.PLANNING: Look("planning", "Planning", "Decides how to start.", "spin", "busy", "loading"),
    State.STARTING: Look(
        "starting", "Loading", "The engine reads the model into memory.", "spin", "busy", "loading"
    ),
    State.READY: Look("ready", "Ready", "Serves requests.", "check", "ok", "ready"),
    State.DRAINING: Look(
        "draining", "Finishing", "Finishes its requests, takes no new ones.", "drain", "wait", "ready"
    ),
    State.STOPPING: Look("stopping", "Stopping", "Was told to end.", "spin", "wait", "stopped"),
    State.BACKOFF: Look(
        "backoff", "Waiting to retry", "Did not succeed; the next try comes.", "clock", "wait", "waiting"
    ),
    State.FAILED: Look("failed", "Failed", "Gave up; the reason says what to do.", "cross", "bad", "failed"),
    State.STOPPED: Look("stopped", "Not loaded", "Uses no memory.", "circle", "idle", "stopped"),
}
WAITING_FOR_MEMORY = Look(
    "waiting-for-memory",
    "Waiting for memory",
    "Starts once its pool has room for it.",
    "clock",
    "wait",
    "loading",
)
"""How planning looks while it waits for memory."""
UNLOAD_MODES: tuple[tuple[StopMode, str], ...] = (
    ("drain", "finish running requests first"),
    ("now", "end running requests"),
    ("kill", "kill the process at once"),
)
"""Ways to unload (07 §5.1) with what they do; the first is the one that hurts nobody."""

_FITTING: Mapping[State, tuple[tuple[Verb, str], ...]] = {
    State.PENDING: (("unload", "Cancel load"),),
    State.FETCHING: (("unload", "Cancel load"),),
    State.PLANNING: (("unload", "Cancel load"),),
    State.STARTING: (("unload", "Cancel load"),),
    State.READY: (("unload", "Unload"), ("reload", "Reload")),
    State.DRAINING: (("unload", "Unload"),),
    State.STOPPING: (),
    State.BACKOFF: (("reload", "Retry now"), ("unload", "Give up")),
    State.FAILED: (("reload", "Reload"),),
    State.STOPPED: (("load", "Load"),),
}


def look_of(state: State, *, waits_for_memory: bool = False) -> Look:
    """The look of a state of a model, or of an instance of one that `waits_for_memory`."""
    return WAITING_FOR_MEMORY if waits_for_memory and state is State.PLANNING else LOOKS[state]


def look_of_model(view: ModelView) -> Look:
    """The look of a model's state."""
    return look_of(view.state, waits_for_memory=view.queue.position is not None)


def actions_of(view: ModelView) -> tuple[Action, ...]:
    """The buttons that make sense now; none for a model that is no longer declared."""
    if view.removed:
        return ()
    url, ready = model_url(view.request.id), view.state is State.READY
    return tuple(
        Action(verb, label, f"{url}/{verb}", main=verb != "unload" and not ready)
        for verb, label in _FITTING[view.state]
    )

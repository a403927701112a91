"""Events of an instance's stream: what kind one is, and what is known after it (08 §1.1, §6.3-6.8). Pure.

Called by the generation driver for each payload that `sse` yields. Hostile shapes (missing, null or foreign
values anywhere) are legal here: they count as nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from framework.proxy.usage import total

log = logging.getLogger(__name__)

DONE = b"[DONE]"
QUOTED_IN_LOG = 100

EventKind = Literal["model", "progress", "frame", "error", "done"]


@dataclass(slots=True)
class StreamEvent:
    """One event. `payload` is the text it came as; whoever changes `data` builds a new payload."""

    kind: EventKind
    payload: bytes
    data: dict[str, Any]


def read_event(payload: bytes) -> StreamEvent | None:
    """The event of a `data:` payload, None for one that is to be skipped: no JSON, or no object."""
    if payload.strip() == DONE:
        return StreamEvent("done", payload, {})
    try:
        data = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return _read_damaged(payload)
    if not isinstance(data, dict):
        _log_skipped(payload)
        return None
    return StreamEvent(_kind(data), payload, data)


def _read_damaged(payload: bytes) -> StreamEvent | None:
    """Invalid UTF-8 becomes U+FFFD (08 §6.1); whatever else is wrong makes the event unusable."""
    text = payload.decode("utf-8", "replace").encode()
    if text != payload:
        return read_event(text)
    _log_skipped(payload)
    return None


def _log_skipped(payload: bytes) -> None:
    log.debug("an event of the engine is no JSON object: %r", payload[:QUOTED_IN_LOG])


def _kind(data: Mapping[str, Any]) -> EventKind:
    if data.get("error"):
        return "error"
    if data.get("type") == "diffusion_frame":
        return "frame"
    if "prompt_progress" in data or is_role_only(data):
        return "progress"
    return "model"


def choices_of(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The choices of a chunk that are objects; missing and empty are legal."""
    choices = data.get("choices")
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


def index_of(choice: Mapping[str, Any]) -> int:
    """The number of a choice, 0 when it has none."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def delta_of(choice: Mapping[str, Any]) -> dict[str, Any]:
    """The delta of a chat choice; null and missing count as empty (08 §6.6)."""
    delta = choice.get("delta")
    return delta if isinstance(delta, dict) else {}


def is_role_only(data: Mapping[str, Any]) -> bool:
    """Whether a chunk announces a role and brings nothing else."""
    choices = choices_of(data)
    for choice in choices:
        if not _announces_only(choice):
            return False
    return bool(choices)


def _announces_only(choice: Mapping[str, Any]) -> bool:
    delta = choice.get("delta")
    if not isinstance(delta, dict) or "role" not in delta or choice.get("finish_reason"):
        return False
    return not any(value for name, value in delta.items() if name != "role")


def _object(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


@dataclass
class StreamState:
    """What the events so far have told: enough to end the answer in every way it can end."""

    opened: bool = False
    done: bool = False
    finish: dict[int, str | None] = field(default_factory=dict)
    """Finish reason by choice, None while that choice goes on."""
    usages: list[dict[str, Any]] = field(default_factory=list)
    """Token counts in the order they came."""
    timings: dict[str, Any] | None = None
    last: dict[str, Any] = field(default_factory=dict)
    """The newest chunk that names itself; its id, model and time are used for chunks of our own."""
    prompts: int = 1
    """How many prompts were asked; each has choices of its own."""
    pieces: int = 0
    """Events that brought a piece of the answer: about one token each."""

    def observe(self, event: StreamEvent) -> None:
        """Take an event into account."""
        if event.kind == "done":
            self.done = True
            return
        if event.kind in ("model", "frame"):
            self.opened = True
        if usage := _object(event.data.get("usage")):
            self.usages.append(usage)
        self.timings = _object(event.data.get("timings")) or self.timings
        if "id" in event.data:
            self.last = event.data
        for choice in choices_of(event.data):
            reason = choice.get("finish_reason")
            index = index_of(choice)
            if isinstance(reason, str) and reason:
                self.finish[index] = reason
            else:
                self.finish.setdefault(index, None)
                self.pieces += event.kind == "model"

    @property
    def usage(self) -> dict[str, Any] | None:
        """The newest counts; the sum of all when each of several choices came with counts of its own."""
        if len(self.usages) > 1 and len(self.usages) == len(self.finish):
            return total(self.usages, self.prompts)
        return self.usages[-1] if self.usages else None

    @property
    def lacks_prompt(self) -> bool:
        """Whether the answer has ended without a count of its prompt that it should have told."""
        return False

    def note_prompt(self, tokens: int | None) -> None:
        """What was found out about a prompt that the answer lacks. REQUIRES: `lacks_prompt`."""

    @property
    def complete(self) -> bool:
        """Whether a body that ends now ends normally: marked, or with a reason for every choice (08 §6.8)."""
        return self.done or (bool(self.finish) and all(self.finish.values()))

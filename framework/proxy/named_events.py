"""Events that carry a name, as the Messages and the Responses API write them (12 §4.7). Pure.

Their payload repeats the name as `type`. What opens an answer (08 §1.1) is held back until there is a piece
of it, so that an attempt that is repeated before then shows once.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from framework.proxy.relay import as_it_came, sse
from framework.proxy.stream_events import StreamEvent, read_event

# What an engine calls an event becomes a line of ours.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,80}")


def read_named(payload: bytes, openings: frozenset[str]) -> StreamEvent | None:
    """The event of a payload; those whose `type` is among `openings` bring nothing of the answer."""
    event = read_event(payload)
    if event is not None and event.kind not in ("error", "done"):
        event.kind = "progress" if event_type(event.data) in openings else "model"
    return event


def event_type(data: dict[str, Any]) -> str:
    """The name of an event, empty for one without."""
    found = data.get("type")
    return found if isinstance(found, str) else ""


def named_sse(name: str, payload: bytes) -> bytes:
    """One event under its name; without a usable one only its data."""
    return b"event: " + name.encode() + b"\n" + sse(payload) if NAME.fullmatch(name) else sse(payload)


def encoded(data: dict[str, Any]) -> bytes:
    """An event whose payload is built here."""
    return named_sse(event_type(data), orjson.dumps(data))


def passed_on(event: StreamEvent) -> bytes:
    """An event as it came."""
    return named_sse(event_type(event.data), as_it_came(event))


def object_of(data: dict[str, Any], name: str) -> dict[str, Any]:
    """A field that is an object, empty when it is none."""
    found = data.get(name)
    return found if isinstance(found, dict) else {}

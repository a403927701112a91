"""Events as rows. Pure; used by all three pages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from framework.api.shapes import plain
from framework.dashboard.states import Tone
from framework.dashboard.urls import model_url
from framework.telemetry.events import WARNINGS
from framework.values.event import Event
from framework.values.reason import Reason, Severity
from framework.values.units_text import duration, size

GOOD = frozenset({"ready", "replaced", "manifest_loaded", "slots_restored"})
TONES: dict[Severity, Tone] = {"error": "bad", "warning": "wait", "info": "idle"}
# Facts that are bytes by instance and device, though their name does not say so.
OF_BYTES = frozenset({"held_by"})
# A value longer than this is cut: the whole of it is one click away in the export.
DATA_LIMIT = 600


@dataclass(frozen=True)
class EventRow:
    """One event. `model` is empty for what belongs to no model; `data` are its fields as text."""

    id: int
    at: datetime
    kind: str
    model: str
    model_url: str
    replica: int | None
    message: str
    tone: Tone
    icon: str
    reason: Reason | None
    data: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RecentEvents:
    """The newest events of all models or of one, newest first, and where the rest is."""

    rows: tuple[EventRow, ...]
    url: str
    names_models: bool


def event_row(event: Event) -> EventRow:
    """One event as a row."""
    tone = _tone(event)
    icons: dict[Tone, str] = {"bad": "cross", "wait": "warn", "ok": "check", "busy": "info", "idle": "dot"}
    return EventRow(
        id=event.id,
        at=event.at,
        kind=event.kind,
        model=event.model or "",
        model_url=model_url(event.model) if event.model else "",
        replica=event.replica,
        # Said once: a refusal's message is that of its reason.
        message="" if event.reason is not None and event.reason.message == event.message else event.message,
        tone=tone,
        icon=icons[tone],
        reason=event.reason,
        data=fact_texts(_beside(event.data, event.reason)),
    )


def newest_first(events: Iterable[Event]) -> tuple[EventRow, ...]:
    """Rows of events that come oldest first."""
    return tuple(event_row(event) for event in reversed(list(events)))


def fact_texts(facts: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Named facts as short texts: secrets hidden, bytes and seconds with their unit; no empty ones."""
    found = (_fact(name, value) for name, value in facts.items())
    return tuple((name, text) for name, text in found if text)


def _beside(data: Mapping[str, Any], reason: Reason | None) -> dict[str, Any]:
    """What of an event its reason does not show already."""
    shown = reason.evidence if reason is not None else {}
    return {name: value for name, value in data.items() if name not in shown or shown[name] != value}


def _fact(name: str, value: Any) -> tuple[str, str]:
    words = name.replace("_", " ")
    if name in OF_BYTES or name.endswith("_bytes"):
        return words.removesuffix(" bytes"), _sizes(value)
    if _is_number(value) and (name == "seconds" or name.endswith("_s")):
        return words.removesuffix(" s"), duration(value)
    return words, _text(plain(value, name))


def _sizes(value: Any) -> str:
    """Bytes by whatever they are of: `hand.0@1: CPU 61 MiB; c.0@2: CPU 61 MiB`. Of many, 0 is left out."""
    if not isinstance(value, Mapping):
        return size(int(value)) if _is_number(value) else _text(plain(value))
    parts = [(str(name), _sizes(part)) for name, part in value.items() if part]
    if any(isinstance(part, Mapping) for part in value.values()):
        return _cut("; ".join(f"{name}: {sizes}" for name, sizes in parts))
    return _cut(", ".join(f"{name.replace('_', ' ')} {amount}" for name, amount in parts))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _tone(event: Event) -> Tone:
    if event.reason is not None and event.reason.severity != "info":
        return TONES[event.reason.severity]
    if event.kind in WARNINGS:
        return "wait"
    if event.kind == "command":
        return "busy"
    return "ok" if event.kind in GOOD else "idle"


def _text(value: object) -> str:
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return _cut(", ".join(value))
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= DATA_LIMIT else text[:DATA_LIMIT] + "…"

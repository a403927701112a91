"""Events and requests as rows of the store, and back. Pure.

What is written is bounded whatever it holds; what is read may come from anywhere and is taken as far as it
makes sense.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields
from datetime import UTC, datetime
from typing import Any

from framework.values.event import Event
from framework.values.json_bytes import json_bytes
from framework.values.plain_text import encodable
from framework.values.reason import Reason
from framework.values.request_record import TEXTS_LIMIT_BYTES, RequestRecord, RequestTexts

# A manifest of a thousand mistakes is one event; nobody reads them all there.
MESSAGE_LIMIT = 4000
PART_LIMIT_BYTES = 64 * 2**10
# Hidden characters are spelt out in JSON, with up to six for one.
MOST_TEXTS_BYTES = 2 * TEXTS_LIMIT_BYTES
# Names of models, keys and unknown paths come from outside.
NAME_LIMIT = 300
SEVERITIES = frozenset({"info", "warning", "error"})

EventRow = tuple[int, str, str, str | None, int | None, str, str | None, str, int]
RequestRow = tuple[str, str, str | None, str | None, int, str, int, str | None]


def event_row(document: Mapping[str, Any]) -> EventRow:
    """An event as it is shown (13 §6, redacted), for the columns of the table."""
    reason = None if document["reason"] is None else _bounded(document["reason"], _short_reason)
    data = _bounded(document["data"], _left_out)
    message = _cut(document["message"], MESSAGE_LIMIT)
    return (
        document["id"],
        document["at"],
        document["kind"],
        _name(document["model"]),
        document["replica"],
        message,
        reason,
        data,
        len(message) + len(reason or "") + len(data),
    )


def event_of(row: tuple[Any, ...]) -> Event | None:
    """An event as it was stored; None for a row that is none. Details that make no sense are left out."""
    number, at, kind, model, replica, message, reason, data = row
    moment = _moment(at)
    if moment is None or not isinstance(kind, str) or not isinstance(message, str):
        return None
    return Event(
        number,
        moment,
        kind,
        message,
        model if isinstance(model, str) else None,
        replica if isinstance(replica, int) else None,
        _reason(_object(reason)),
        _object(data),
    )


def request_row(record: RequestRecord) -> RequestRow:
    """A finished request for the columns of the table."""
    # Its values are plain, so the copies that `asdict` makes of them are not needed.
    document = {
        name: _cut(value, NAME_LIMIT) if isinstance(value, str) else value
        for name, value in vars(record).items()
        if name not in ("at", "texts")
    }
    text = json_bytes(document).decode()
    texts = None if record.texts is None else _bounded(asdict(record.texts), _no_texts, MOST_TEXTS_BYTES)
    size = len(text) + len(texts or "")
    moment = moment_text(record.at)
    model, key = document["model"], document["key"]
    return record.id, moment, model, key, record.status, text, size, texts


def moment_text(at: datetime) -> str:
    """A moment as the tables have it; the order of such texts is that of time."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def request_of(row: tuple[Any, ...]) -> RequestRecord | None:
    """A request as it was stored; None for a row that is none."""
    at, document, texts = row
    moment, values = _moment(at), _object(document)
    kept = {name: values[name] for name in REQUEST_FIELDS if name in values}
    if moment is None or not kept.keys() >= REQUIRED:
        return None
    if not all(REQUEST_FIELDS[name](value) for name, value in kept.items()):
        return None
    return RequestRecord(at=moment, texts=_texts(_object(texts)), **kept)


def _check_of(annotation: str) -> Callable[[object], bool]:
    """What a value of a field of this type passes."""
    types = {part.strip() for part in annotation.split("|")}

    def check(value: object) -> bool:
        if value is None:
            return "None" in types
        if isinstance(value, bool):
            return "bool" in types
        if isinstance(value, int | float):
            is_count = isinstance(value, int) and "int" in types
            return is_count or ("float" in types and math.isfinite(value))
        return isinstance(value, str) and "str" in types

    return check


_STORED = [field for field in fields(RequestRecord) if field.name not in ("at", "texts")]
REQUEST_FIELDS = {field.name: _check_of(str(field.type)) for field in _STORED}
REQUIRED = {field.name for field in _STORED if field.default is MISSING}
"""What every version of the file has; later fields are absent of older requests."""


def _texts(values: Mapping[str, Any]) -> RequestTexts | None:
    asked, answered = values.get("asked"), values.get("answered")
    if not isinstance(asked, dict) or not isinstance(answered, dict):
        return None
    return RequestTexts(asked, answered, bool(values.get("is_cut")))


def _bounded(
    value: Mapping[str, Any],
    shorter: Callable[[Mapping[str, Any], int], Mapping[str, Any]],
    limit_bytes: int = PART_LIMIT_BYTES,
) -> str:
    data = json_bytes(value)
    if len(data) > limit_bytes:
        data = json_bytes(shorter(value, len(data)))
    return data.decode()


def _left_out(_value: Mapping[str, Any], size_bytes: int) -> dict[str, Any]:
    return {"left_out_bytes": size_bytes}


def _no_texts(_value: Mapping[str, Any], _size_bytes: int) -> dict[str, Any]:
    return {"asked": {}, "answered": {}, "is_cut": True}


def _short_reason(value: Mapping[str, Any], size_bytes: int) -> dict[str, Any]:
    texts = {name: _cut(value[name], MESSAGE_LIMIT) for name in ("code", "message", "remedy", "severity")}
    return {**texts, "evidence": _left_out(value, size_bytes)}


def _reason(values: Mapping[str, Any]) -> Reason | None:
    texts = [values.get(name) for name in ("code", "message", "remedy", "severity")]
    if not all(isinstance(text, str) for text in texts) or values["severity"] not in SEVERITIES:
        return None
    evidence = values.get("evidence")
    return Reason(
        values["code"],
        values["message"],
        values["remedy"],
        values["severity"],
        evidence if isinstance(evidence, dict) else {},
    )


def _object(text: object) -> dict[str, Any]:
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def _name(text: str | None) -> str | None:
    return None if text is None else _cut(text, NAME_LIMIT)


def _cut(text: str, limit: int) -> str:
    return encodable(text if len(text) <= limit else text[:limit] + "...")

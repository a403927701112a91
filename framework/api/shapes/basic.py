"""The small shapes that all others contain: reasons, devices, events, and any value as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from framework.engines.redaction import redact_argv, redact_environment
from framework.values.device import Device
from framework.values.event import Event
from framework.values.reason import Reason, as_json

# Names under which values hold environments and command lines, wherever they are nested.
ENVIRONMENT_NAMES = frozenset({"env", "environment"})
ARGUMENT_NAMES = frozenset({"extra_args", "engine_args", "argv"})


def at(moment: datetime) -> str:
    """An RFC 3339 time in UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain(value: Any, name: str = "") -> Any:
    """Any of our values as JSON types, redacted where `name`, the field it stands in, says so."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, datetime):
        return at(value)
    if name in ENVIRONMENT_NAMES and isinstance(value, Mapping):
        return redact_environment({str(key): str(text) for key, text in value.items()})
    if name in ARGUMENT_NAMES and isinstance(value, list | tuple):
        return list(redact_argv([str(token) for token in value]))
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: plain(getattr(value, part.name), part.name) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item, str(key)) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(str(item) for item in value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)


def reason_json(reason: Reason) -> dict[str, Any]:
    """13 §1, with all the evidence."""
    return as_json(reason, plain(reason.evidence))


def optional_reason_json(reason: Reason | None) -> dict[str, Any] | None:
    """13 §1, or null."""
    return None if reason is None else reason_json(reason)


def device_json(device: Device) -> dict[str, Any]:
    """A device of 13 §2, with where it is and what is known of its use."""
    return {
        "name": device.name,
        "kind": device.kind,
        "total_bytes": device.total_bytes,
        "free_bytes": device.free_bytes,
        "pool": device.pool,
        "description": device.description,
        "endpoint": device.endpoint,
        "uuid": device.uuid,
        "bus_id": device.bus_id,
        "unified": device.is_unified,
        "same_as": device.same_as,
        "utilisation": device.utilisation,
        "used_by_pid": {str(pid): used for pid, used in device.used_by_pid.items()},
    }


def optional_at(moment: datetime | None) -> str | None:
    """A time, or null."""
    return None if moment is None else at(moment)


def event_json(event: Event) -> dict[str, Any]:
    """13 §6."""
    return {
        "id": event.id,
        "at": at(event.at),
        "kind": event.kind,
        "model": event.model,
        "replica": event.replica,
        "message": event.message,
        "reason": optional_reason_json(event.reason),
        "data": plain(event.data),
    }

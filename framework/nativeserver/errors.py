"""Errors of the HTTP interface: kinds, statuses, envelope (12 §2.10-2.12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal[
    "invalid_request",
    "authentication",
    "permission",
    "not_found",
    "server",
    "not_supported",
    "unavailable",
    "exceed_context_size",
]
STATUS: dict[Kind, int] = {
    "invalid_request": 400,
    "authentication": 401,
    "permission": 403,
    "not_found": 404,
    "server": 500,
    "not_supported": 501,
    "unavailable": 503,
    "exceed_context_size": 400,
}


MOST_MESSAGE = 2000
"""Characters: messages quote what clients sent, and templates and parsers quote as much as they like."""


@dataclass
class ApiError(Exception):
    """An answer that is an error; `extra` are further members of the error object."""

    kind: Kind
    message: str
    extra: dict[str, Any] = field(default_factory=dict)
    status_override: int | None = None
    """A status other than the kind's own, e.g. 413."""

    @property
    def status(self) -> int:
        """HTTP status."""
        return self.status_override or STATUS[self.kind]

    def error_object(self) -> dict[str, Any]:
        """The value of `error` in the envelope."""
        message = self.message
        if len(message) > MOST_MESSAGE:
            message = f"{message[:MOST_MESSAGE]}..."
        return {"code": self.status, "message": message, "type": f"{self.kind}_error", **self.extra}

    def envelope(self) -> dict[str, Any]:
        """`{"error": {...}}`."""
        return {"error": self.error_object()}

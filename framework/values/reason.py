"""Why something differs from what was asked: the one type for fallbacks, notes, refusals and failures.

Shape and severities: 13 §1. Codes are snake_case and stable; they are listed in docs/reasons.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Reason:
    """One explained difference between asked, granted and running.

    `message` is a full sentence for a person, `remedy` says what to do (empty when nothing can be done),
    `evidence` holds the facts behind it as JSON values.
    """

    code: str
    message: str
    remedy: str = ""
    severity: Severity = "info"
    evidence: Mapping[str, Any] = field(default_factory=dict)


def as_json(reason: Reason, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The shape of 13 §1. `evidence` is what of it the reader may see, as JSON values."""
    return {
        "code": reason.code,
        "message": reason.message,
        "remedy": reason.remedy,
        "severity": reason.severity,
        "evidence": dict(evidence),
    }


@dataclass(frozen=True)
class Failure:
    """Why a launch failed: a reason whose code is the failure class of 06 §14, and what to do next.

    `retryable` failures are tried again with backoff; the others wait for a changed manifest, file or
    binary, or for the command `reload`.
    """

    reason: Reason
    detail: str = ""
    """Exit code, log path and the last lines of output, redacted; may span lines."""
    retryable: bool = False


class Refused(Exception):
    """A launch that was refused before any process was started (06 §14.2)."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason.message)
        self.failure = failure

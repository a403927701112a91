"""What the manager and its download process say to each other: one JSON document a line (02 §10).

A job goes in; notes of progress come out, then one answer or one refusal. Both ends use these functions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from framework.values.reason import Failure, Reason, Refused

Work = Literal["list", "fetch", "headers"]
# A listing of the largest repositories has some thousand files of some hundred bytes each.
LONGEST_LINE = 16 * 2**20


@dataclass(frozen=True)
class Patience:
    """How long a download waits for what may pass. Seconds."""

    retry_waits_s: tuple[float, ...] = (1.0, 5.0, 15.0, 30.0, 60.0)
    """Pauses after failures without a new byte in between; then the download is refused."""
    rate_limit_s: float = 60.0
    """The longest pause that the hub may ask for; a longer one is refused with its length."""
    busy_s: float = 180.0
    """How long another process may hold the repository without a new byte: longer than any pause of it."""


@dataclass(frozen=True)
class Job:
    """One piece of work of a download process."""

    work: Work
    repo: str
    cache_dir: str
    variant: str | None = None
    file: str | None = None
    header_bytes: int = 0
    """`headers`: how much of the first file is asked for at first."""
    target: str = ""
    """`headers`: the directory of the stand-ins."""
    patience: Patience = Patience()

    def to_line(self) -> bytes:
        """As one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Job:
        """Back from one line."""
        fields = json.loads(line)
        patience = fields.pop("patience")
        patience["retry_waits_s"] = tuple(patience["retry_waits_s"])
        return cls(**fields, patience=Patience(**patience))


@dataclass(frozen=True)
class Note:
    """Progress of a fetch: the file it is at, and bytes over all its files."""

    file: str
    loaded_bytes: int
    total_bytes: int


def note_line(note: Note) -> str:
    """A note as a line."""
    return json.dumps({"note": asdict(note)})


def answer_line(answer: Mapping[str, Any]) -> str:
    """The answer of a job as a line."""
    return json.dumps({"answer": answer})


def refusal_line(refusal: Refused) -> str:
    """A refusal as a line."""
    failure = refusal.failure
    return json.dumps({"refused": asdict(failure.reason), "retryable": failure.retryable})


def read_line(line: bytes) -> Note | Mapping[str, Any] | Refused | None:
    """A note, the answer, the refusal; None for anything else."""
    try:
        message = json.loads(line)
        if "note" in message:
            return Note(**message["note"])
        if "refused" in message:
            return Refused(Failure(Reason(**message["refused"]), retryable=bool(message["retryable"])))
        answer = message["answer"]
    except (ValueError, TypeError, KeyError):
        return None
    return answer if isinstance(answer, dict) else None

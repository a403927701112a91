"""`resume.json`: which files hold which slots, and what they belong to (07 §11.8). Pure; hostile text in.

Written by runtime.slot_saving, read by runtime.slot_restoring and by the tidying at the start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from framework.planning.slot_saving.fingerprint import SlotFingerprint

# Changes with every change of what is kept.
FORMAT = 1
MOST_SLOTS = 256
MOST_TOKENS = 2**31
FILE_NAME = re.compile(r"resume-[0-9a-f]{8}-slot[0-9]{1,4}\.bin")


@dataclass(frozen=True)
class SavedSlot:
    """One slot, its file and the tokens in it."""

    id: int
    filename: str
    n_saved: int


@dataclass(frozen=True)
class Record:
    """What was saved. `belongs_to` has the fields of a fingerprint."""

    belongs_to: Mapping[str, Any]
    slots: tuple[SavedSlot, ...]


def slot_file_name(run: str, slot: int) -> str:
    """The name of a slot's file; `run` is 8 hex digits, the same for all that are saved together."""
    return f"resume-{run}-slot{slot}.bin"


def encode(fingerprint: SlotFingerprint, slots: Iterable[SavedSlot]) -> bytes:
    """A record as it is written."""
    document = {"format": FORMAT, **fingerprint.as_json(), "slots": [asdict(slot) for slot in slots]}
    return json.dumps(document, ensure_ascii=True).encode("ascii")


def decode(data: bytes) -> Record | None:
    """A record as it was written; None for anything else."""
    try:
        document = json.loads(data)
        if document.pop("format") != FORMAT:
            return None
        slots = tuple(_slot(entry) for entry in document.pop("slots")[:MOST_SLOTS])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return Record(document, slots) if len({slot.id for slot in slots}) == len(slots) > 0 else None


def _slot(entry: Mapping[str, Any]) -> SavedSlot:
    name = entry["filename"]
    if not isinstance(name, str) or not FILE_NAME.fullmatch(name):
        raise ValueError("no name of ours")
    return SavedSlot(_whole(entry["id"], MOST_SLOTS - 1), name, _whole(entry["n_saved"], MOST_TOKENS))


def _whole(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("no number")
    return value

"""Speeds measured so far, kept over launches and lives of the manager: one small private file a launch.

Called by runtime.speculation_watch, and by `paddock bench` through it. Whatever is not plainly ours and whole
is no measurement.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from framework.models.own_files import is_own_place, prune, read_own, write_own
from framework.planning.speculation.profit import Tally
from framework.runtime.private import make_private
from framework.values.spec_yield import PLAIN

log = logging.getLogger(__name__)

# Changes with every change of what is kept, or of how it is measured.
FORMAT = 1
FOLDER = "speeds"
MOST_FILES = 512
FILE_LIMIT_BYTES = 64 * 2**10
MOST_CELLS = 256
MOST_SLOTS = 4096
MOST = 1e15
TEXT_LIMIT = 200
# Types of speculation as engines write them, several with commas, and digests.
TYPES = re.compile(r"[A-Za-z0-9,+:=._ -]*")
# No engine is faster.
LEAST_S_PER_TOKEN = 1e-6


@dataclass(frozen=True)
class Place:
    """What a sum is of: what drafted and how, and how many requests were served meanwhile."""

    running: str
    means: str
    """As `Drafting.means`; empty without drafting."""
    busy_slots: int


def plain(busy_slots: int) -> Place:
    """The place of answers without drafting."""
    return Place(PLAIN, "", busy_slots)


Sums = Mapping[Place, Tally]


class SpeedStore:
    """Sums below a state directory, by launch; without one nothing is kept. Never raises."""

    def __init__(self, state_dir: Path | None = None) -> None:
        self._folder = None if state_dir is None else state_dir / FOLDER

    def find(self, launch: str) -> dict[Place, Tally]:
        """The sums kept for a launch, in the order in which they were made; empty when there are none."""
        if self._folder is None or not is_own_place(self._folder):
            return {}
        data = read_own(self._folder / f"{launch}.json", FILE_LIMIT_BYTES)
        return {} if data is None else decode(data)

    def keep(self, launch: str, sums: Sums) -> None:
        """Replace the sums of a launch, and drop the oldest launches when there are too many."""
        if self._folder is None:
            return
        try:
            make_private(self._folder)
            if not is_own_place(self._folder):
                raise OSError("it, or the folder above it, is not this user's alone (mode 0700)")
            write_own(self._folder / f"{launch}.json", encode(sums))
            prune(self._folder, most_files=MOST_FILES, most_bytes=MOST_FILES * FILE_LIMIT_BYTES)
        except OSError as error:
            log.warning("measured speeds are not kept in %s: %s", self._folder, error)


def encode(sums: Sums) -> bytes:
    """Sums as they are written; of too many, the newest."""
    cells = [{**asdict(place), **asdict(tally)} for place, tally in sums.items()]
    return json.dumps({"format": FORMAT, "cells": cells[-MOST_CELLS:]}).encode("ascii")


def decode(data: bytes) -> dict[Place, Tally]:
    """Sums as they were written; none for anything else."""
    try:
        document = json.loads(data)
        if type(document["format"]) is not int or document["format"] != FORMAT:
            return {}
        return dict(_cell(cell) for cell in document["cells"][:MOST_CELLS])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return {}


def _cell(cell: Mapping[str, Any]) -> tuple[Place, Tally]:
    sums = [_amount(cell[name]) for name in ("tokens", "seconds", "drafted", "accepted")]
    if sums[0] and sums[1] < LEAST_S_PER_TOKEN * sums[0]:
        raise ValueError("no time for so many tokens")
    place = Place(_text(cell["running"]), _text(cell["means"]), _whole(cell["busy_slots"], MOST_SLOTS))
    return place, Tally(_whole(cell["requests"], int(MOST)), *sums)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > TEXT_LIMIT or not TYPES.fullmatch(value):
        raise ValueError("no text")
    return value


def _whole(value: Any, most: int) -> int:
    if type(value) is not int or not 0 < value <= most:
        raise ValueError("no number")
    return value


def _amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("no amount")
    if not 0 <= value <= MOST:
        raise ValueError("no amount")
    return float(value)

"""What engines said about memory, kept for the next plan: one small private file for each answer (13 §2).

Called by runtime.measuring, in worker threads. An answer belongs to the files, the engine binary and the
settings that it was given for. Whatever is not plainly ours and whole is no answer.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from framework.engines.redaction import is_secret_name
from framework.models.own_files import is_own_place, prune, read_own, write_own
from framework.runtime.private import make_private
from framework.values.device import Device
from framework.values.engine import FileId
from framework.values.measurement import EngineChoice, MeasuredRow, MeasuredTable, Measurement
from framework.values.plan import LaunchPlan

log = logging.getLogger(__name__)

# Changes with every change of what is kept, or of how it is measured.
FORMAT = 1
FOLDER = "measurements"
MOST_FILES = 512
FILE_LIMIT_BYTES = 64 * 2**10
KEY_DIGITS = 40
MOST_MIB = 10**9
MOST_TOKENS = 10**12
NAME_LIMIT = 200
# Sections of a command line that have no say in memory (06 §6.1).
WITHOUT_MEMORY = frozenset(
    {"listen", "alias", "metrics", "shift", "jinja", "template", "template-kwargs", "threads", "verbosity"}
    | {"slot-save"}
)
BACKEND_VARIABLES = ("CUDA_", "HIP_", "ROCR_", "HSA_", "MUSA_", "ONEAPI_", "SYCL_", "ZE_", "VK_", "MESA_")
# What engines, their backends and the loader of libraries read; a terminal's variables are nobody's settings.
VARIABLES = ("LLAMA_", "GGML_", "LD_", *BACKEND_VARIABLES)


def measurement_key(plan: LaunchPlan, files: Iterable[FileId], devices: Iterable[Device]) -> str:
    """What an answer is filed under. `files` are all that the launch loads, `devices` all that its engine
    lists: with another one among them it would divide the model otherwise."""
    own = {*plan.request.env, *plan.request.engine.env}
    facts = {
        "files": [[os.fspath(file.path), file.size, file.mtime_ns] for file in files],
        "devices": sorted(device.name for device in devices),
        "engine": [os.fspath(plan.engine.file.path), plan.engine.file.size, plan.engine.file.mtime_ns],
        "line": [
            [section.name, *section.tokens] for section in plan.sections if section.name not in WITHOUT_MEMORY
        ],
        "env": {
            name: value
            for name, value in plan.env.items()
            if (name in own or name.startswith(VARIABLES)) and not is_secret_name(name)
        },
    }
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:KEY_DIGITS]


class Measurements:
    """Answers below a state directory; without one nothing is remembered. Never raises."""

    def __init__(self, state_dir: Path | None = None) -> None:
        self._folder = None if state_dir is None else state_dir / FOLDER

    def find(self, key: str) -> Measurement | None:
        """The answer filed under a key."""
        if self._folder is None or not is_own_place(self._folder):
            return None
        data = read_own(self._folder / f"{key}.json", FILE_LIMIT_BYTES)
        return None if data is None else decode(data)

    def keep(self, key: str, measured: Measurement) -> None:
        """File an answer, and drop the oldest ones when there are too many."""
        if self._folder is None:
            return
        try:
            make_private(self._folder)
            if is_own_place(self._folder):
                write_own(self._folder / f"{key}.json", encode(measured))
                prune(self._folder, most_files=MOST_FILES, most_bytes=MOST_FILES * FILE_LIMIT_BYTES)
        except OSError as error:
            log.warning("a measurement is not kept in %s: %s", self._folder, error)


def encode(measured: Measurement) -> bytes:
    """An answer as it is written."""
    return json.dumps({"format": FORMAT, **asdict(measured)}).encode("ascii")


def decode(data: bytes) -> Measurement | None:
    """An answer as it was written; None for anything else."""
    try:
        document = json.loads(data)
        if document.pop("format") != FORMAT:
            return None
        choice = document["choice"]
        measured = Measurement(
            _table(document["asked"]),
            _table(document["draft"]),
            _optional(document["projector_mib"], MOST_MIB),
            None if choice is None else _choice(choice),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return measured if measured.asked else None


def _choice(value: Mapping[str, Any]) -> EngineChoice:
    return EngineChoice(
        _table(value["table"]),
        _optional(value["context"], MOST_TOKENS),
        _optional(value["gpu_layers"], MOST_TOKENS),
        _number(value["partial_layers"], MOST_TOKENS),
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> MeasuredTable:
    return tuple(
        MeasuredRow(
            _name(row["device"]),
            _name(row["buffer"]),
            _number(row["weights_mib"], MOST_MIB),
            _number(row["context_mib"], MOST_MIB),
            _number(row["compute_mib"], MOST_MIB),
            _optional(row["free_mib"], MOST_MIB),
        )
        for row in rows
    )


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= NAME_LIMIT:
        raise ValueError("no name")
    return value


def _number(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("no number")
    return value


def _optional(value: Any, most: int) -> int | None:
    return None if value is None else _number(value, most)

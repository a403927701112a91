"""Slots of a fake engine in files: saved and restored as the real one does it (15 §6), or with a fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fake_engine.engine import Engine, HttpRefusal

NOTHING_RESTORED = "Unable to restore slot, no available space in KV cache or invalid slot save file"


class HangUp(ConnectionError):
    """The engine closes the connection instead of answering."""


def slot_action(engine: Engine, number: int, action: str, filename: str) -> str:
    """What the engine answers after it did so; counts are tokens."""
    folder = engine.options.get("--slot-save-path")
    if folder is None:
        raise HttpRefusal(501, "not_supported_error", "This server does not support slots action.")
    fault = engine.script.slot_faults.get(f"{action} {number}")
    path, slot = Path(folder) / filename, engine.slots[number]
    tokens = slot.prompt + slot.decoded
    if action == "save":
        path.write_text(json.dumps({"tokens": tokens}).ljust(engine.script.slot_bytes))
    if fault == "refuses":
        raise HttpRefusal(500, "server_error", "no such luck")
    if fault == "hangs up":
        raise HangUp
    if fault == "babbles":
        return "saved!"
    counted: dict[str, Any] = {"id_slot": number, "filename": filename}
    if action == "save":
        return json.dumps(counted | {"n_saved": tokens, "n_written": path.stat().st_size})
    try:
        slot.prompt, slot.decoded = json.loads(path.read_text())["tokens"], 0
    except (OSError, ValueError):
        raise HttpRefusal(400, "invalid_request_error", NOTHING_RESTORED) from None
    return json.dumps(counted | {"n_restored": slot.prompt, "n_read": path.stat().st_size})

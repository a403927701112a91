"""What an engine says when one of its slots is saved or restored (15 §6), as far as it matters here.

Called by runtime.slot_saving and runtime.slot_restoring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from framework.runtime.engine_client import EngineClient
from framework.runtime.launch import Running
from framework.values.plain_text import brief

OK = 200
COUNTS = {"save": "n_saved", "restore": "n_restored"}
LONGEST_SAID = 200


@dataclass(frozen=True)
class Answer:
    """How an action on one slot ended."""

    tokens: int = 0
    """That were saved or restored; 0 where nothing was."""
    is_lost: bool = False
    """There was no answer in time: the engine is gone, or busy with something else."""
    is_refused: bool = False
    said: str = ""
    """Why nothing came of it, as a clause."""


async def slot_action(
    client: EngineClient,
    running: Running,
    slot: int,
    action: Literal["save", "restore"],
    filename: str,
    timeout_s: float,
) -> Answer:
    """Have one slot saved to, or restored from, a file of the engine's folder."""
    status, body = await client.slot_action(running.port, running.key, slot, action, filename, timeout_s)
    if status is None:
        return Answer(is_lost=True, said=f"the engine did not answer within {timeout_s:.0f} s")
    if status != OK:
        return Answer(is_refused=True, said=f"the engine answered {status}{_told(body)}")
    count = body.get(COUNTS[action]) if isinstance(body, Mapping) else None
    if type(count) is not int:
        return Answer(is_refused=True, said="the engine did not say how many tokens there were")
    return Answer(tokens=max(0, count), said="the slot held nothing" if count <= 0 else "")


def _told(body: Any) -> str:
    error = body.get("error") if isinstance(body, Mapping) else None
    text = error.get("message") if isinstance(error, Mapping) else None
    return f": {brief(text, LONGEST_SAID)}" if isinstance(text, str) and text else ""

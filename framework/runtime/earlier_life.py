"""What an earlier life of this manager left behind: taken over where that is wanted and proven, else ended
(07 §8).

Called by app once, before the first apply. Nothing that goes wrong here keeps the manager from starting.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal

from framework.runtime.adoption import Found, LeftBehind, find_left_behind
from framework.runtime.process_identity import is_same
from framework.runtime.records import FOLDER, RECORD, remove
from framework.runtime.shop import Shop
from framework.runtime.sweep import Orphan, sweep
from framework.values.manifest import Manifest
from framework.values.naming import instance_file_name
from framework.values.reason import Reason

log = logging.getLogger(__name__)


async def settle(shop: Shop, manifest: Manifest) -> list[LeftBehind]:
    """What is to be taken over; everything else that is ours is gone when this returns."""
    found = Found([], {})
    try:
        if manifest.server.on_exit == "keep":
            found = await find_left_behind(shop.state_dir, shop.state_id, manifest, shop.client)
    except Exception as error:  # noqa: BLE001  told by _tell_fault
        _tell_fault(shop, error)
    adopted = frozenset(left.record.instance for left in found.taken)
    try:
        orphans = await asyncio.to_thread(sweep, shop.state_dir, shop.state_id, adopted)
        shop.left_alone = frozenset(orphan.instance for orphan in orphans if not orphan.gone)
        is_kept = manifest.server.on_exit == "keep"
        for orphan in orphans:
            refused = found.refused.get(orphan.instance)
            _tell(shop, orphan, refused or (_damaged(orphan) if is_kept else None))
    except Exception as error:  # noqa: BLE001  told by _tell_fault
        _tell_fault(shop, error)
    return found.taken


def give_up(shop: Shop, left: LeftBehind, error: Exception) -> None:
    """End a process that was proven to be ours and could not be taken over all the same."""
    record = left.record
    with contextlib.suppress(OSError):
        if is_same(record.pid, record.identity) == "same":
            os.killpg(record.pid, signal.SIGKILL)
    shop.ports.release(record.port)
    file_name = instance_file_name(record.model, record.replica, record.generation)
    remove(shop.state_dir / FOLDER / f"{file_name}{RECORD}")
    held = left.committed.plan.placement.needs_bytes
    orphan = Orphan(record.pid, record.exe, record.instance, "record", gone=True, held_bytes=held)
    _tell(shop, orphan, f"that failed ({type(error).__name__}); the log has the details")


def _damaged(orphan: Orphan) -> str | None:
    if not orphan.damaged:
        return None
    return f"its record, instances/{orphan.damaged} in the state directory, is damaged and says nothing of it"


def _tell_fault(shop: Shop, error: Exception) -> None:
    what = "looking for processes of an earlier manager failed"
    log.error("%s", what, exc_info=error)
    shop.events.record("sweep_error", f"{what}: {type(error).__name__}; the log has the details")


def _tell(shop: Shop, orphan: Orphan, why: str | None) -> None:
    """`why` it was not taken over, where that was wanted."""
    verdict = "left" if not orphan.gone else "ended"
    data = {
        "pid": orphan.pid,
        "exe": orphan.exe,
        "instance": orphan.instance,
        "step": orphan.step,
        "verdict": verdict,
        "gone": orphan.gone,
    }
    done = "ended" if orphan.gone else "could not end"
    text = f"{done} process {orphan.pid} ({orphan.exe}), left behind by {orphan.instance}"
    if orphan.is_left:
        text = (
            f"process {orphan.pid} ({orphan.exe}) may be {orphan.instance} of an earlier `paddock up`, which"
        )
        text += " cannot be proven; end it yourself if it is not needed"
    if why:
        text += f"; it was not taken over: {why}"
    shop.events.record("orphan", text, reason=_not_taken_over(orphan, why) if why else None, data=data)
    if orphan.gone:
        shop.ledger.came_back(orphan.held_bytes)


def _not_taken_over(orphan: Orphan, why: str) -> Reason:
    return Reason(
        "not_taken_over",
        f"{orphan.instance} was to be kept and is not taken over: {why}.",
        "Nothing, if it was ended: its model starts as the manifest says. Else end the process yourself.",
        "warning",
        {"pid": orphan.pid},
    )

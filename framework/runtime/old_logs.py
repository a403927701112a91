"""Logs of models that are declared no longer: kept for some weeks, then removed (06 §8.4).

Called by app. Removes files that engines wrote and folders that are empty then, nothing else,
and follows no link.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import stat
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path

log = logging.getLogger(__name__)

DAY_S = 24 * 3600.0
# Long enough to look at the logs of something that was tried last month.
KEPT_S = 30 * 24 * 3600.0
OURS = re.compile(r".+\.log(\.\d+(\.gz)?)?")


def _now() -> float:
    """The wall clock in seconds, as times of files are."""
    return datetime.now(UTC).timestamp()


async def remove_old_logs_daily(logs: Path, in_use: Callable[[], Collection[str]]) -> None:
    """Once a day, until cancelled."""
    while True:
        for name in await asyncio.to_thread(remove_old_logs, logs, in_use()):
            log.info("removed the logs of %s, which is not declared any more", name)
        await asyncio.sleep(DAY_S)


def remove_old_logs(
    logs: Path, declared: Collection[str], *, kept_s: float = KEPT_S, now: Callable[[], float] = _now
) -> list[str]:
    """Remove the folders in `logs` that are not `declared` and were last written `kept_s` ago; their names.

    Never raises.
    """
    removed = []
    with contextlib.suppress(OSError):
        for entry in sorted(os.scandir(logs), key=lambda entry: entry.name):
            if entry.name in declared or not entry.is_dir(follow_symlinks=False):
                continue
            folder = Path(entry.path)
            if now() - _newest(folder) >= kept_s and _remove(folder):
                removed.append(entry.name)
    return removed


def _newest(folder: Path) -> float:
    """When anything in it was last written."""
    times = [folder.stat().st_mtime]
    times += [entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(folder)]
    return max(times)


def _remove(folder: Path) -> bool:
    """Whether all of it is gone."""
    try:
        for entry in os.scandir(folder):
            if OURS.fullmatch(entry.name) and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                Path(entry.path).unlink()
        folder.rmdir()
    except OSError:
        return False
    return True

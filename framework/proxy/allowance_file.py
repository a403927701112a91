"""Used tokens of access keys on disk, so that a restart gives nobody a fresh day (01 §1.1 `tokens`).

Run by the assembly. Written some seconds after a use, in a thread, and at the end; a kill loses what was
used since. Requests per time are not kept: their periods are short, and a restart takes longer than most.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import orjson

from framework.models.own_files import read_own, write_own
from framework.proxy.allowances import Allowances
from framework.telemetry.events import utc_now

log = logging.getLogger(__name__)

FILE_NAME = "allowances.json"
PERIOD_S = 10.0
# A key takes about 100 bytes; nobody declares more of them than this holds.
LIMIT_BYTES = 4 * 2**20


class AllowanceFile:
    """The file of one endpoint's allowances, in its state directory."""

    def __init__(
        self,
        directory: Path,
        allowances: Allowances,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._path = directory / FILE_NAME
        self._allowances = allowances
        self._clock = clock
        self._now = now
        self._is_told = False

    def read(self) -> None:
        """Go on where an earlier process ended. A file that is none counts as empty."""
        raw = read_own(self._path, LIMIT_BYTES)
        try:
            kept = orjson.loads(raw) if raw else {}
        except orjson.JSONDecodeError:
            kept = {}
        if isinstance(kept, dict):
            self._allowances.restore(kept, self._clock(), self._now().timestamp())

    async def run(self) -> None:
        """Write what changed, until cancelled, and once more then."""
        try:
            while True:
                await asyncio.sleep(PERIOD_S)
                if self._allowances.changed:
                    await asyncio.to_thread(self._write, self._snapshot())
        finally:
            if self._allowances.changed:
                self._write(self._snapshot())

    def _snapshot(self) -> bytes:
        return orjson.dumps(self._allowances.as_json(self._clock(), self._now().timestamp()))

    def _write(self, data: bytes) -> None:
        try:
            write_own(self._path, data)
        except OSError as error:
            if not self._is_told:
                log.warning("used tokens of keys cannot be kept in %s: %s", self._path, error.strerror)
            self._is_told = True
            return
        self._is_told = False

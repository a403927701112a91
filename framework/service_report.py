"""What systemd is told while `paddock up` runs: that it lives, and one line of what serves.

Called by app. The signs of life come from the event loop that serves requests, so that a loop which stands
still is noticed.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence

from framework.runtime.fleet import Fleet
from framework.service_manager import ServiceManager
from framework.telemetry.changes import Changes
from framework.values.instance import ModelView, State
from framework.values.problem import Problem

# A line that changes more often is read by nobody.
TICK_S = 1.0
# systemd's own advice is half of its limit.
SIGNS_PER_LIMIT = 2
# Between two signs of life the loop may be late by as much.
TICKS_PER_SIGN = 2


class ServiceReport:
    """Reports to one service manager; does nothing where there is none."""

    def __init__(
        self,
        manager: ServiceManager,
        fleet: Fleet,
        changes: Changes,
        address: str,
        problems: Callable[[], Sequence[Problem]],
    ) -> None:
        """`problems` are those of the newest text of the manifest."""
        self._manager = manager
        self._fleet = fleet
        self._changes = changes
        self._address = address
        self._problems = problems

    async def run(self) -> None:
        """Report until cancelled."""
        if not self._manager.is_there:
            return
        sign_s = (self._manager.watchdog_s or 0.0) / SIGNS_PER_LIMIT
        tick_s = min(TICK_S, sign_s / TICKS_PER_SIGN) if sign_s else TICK_S
        seen, said, signed_s = -1, "", time.monotonic()
        self._manager.alive()
        while True:
            if self._changes.version != seen:
                seen = self._changes.version
                line = status_line(self._fleet.views(), self._address, self._problems())
                if line != said:
                    said = line
                    self._manager.status(line)
            await asyncio.sleep(tick_s)
            if sign_s and time.monotonic() - signed_s >= sign_s - tick_s:
                signed_s = time.monotonic()
                self._manager.alive()


def status_line(models: Sequence[ModelView], address: str, problems: Sequence[Problem]) -> str:
    """`2 of 3 models ready, 1 failed (big); 127.0.0.1:8080`. Pure."""
    counts = Counter(model.state for model in models)
    parts = [f"{counts.pop(State.READY, 0)} of {len(models)} models ready"]
    for state, count in counts.items():
        names = [model.request.id for model in models if model.state is state]
        parts.append(
            f"{count} {state} ({', '.join(names)})" if state is not State.STOPPED else f"{count} {state}"
        )
    errors = sum(problem.severity == "error" for problem in problems)
    trouble = (
        f"; the manifest has {errors} {'error' if errors == 1 else 'errors'} and is not in force"
        if errors
        else ""
    )
    return f"{', '.join(parts)}; {address}{trouble}"

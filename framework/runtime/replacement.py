"""Put another instance in the place of one that serves: plan, stop the old, start the new, or go back (07
§4).

The old one serves until the new one is planned, so that a refusal costs nothing. Called by runtime.replica,
as one of its operations.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from framework.runtime.ending import Ending, Stop
from framework.runtime.instance import Instance
from framework.runtime.ledger import Ledger
from framework.runtime.past import roll_back_to
from framework.runtime.starting import Starting, ended_early
from framework.runtime.voice import Voice, still_serving
from framework.values.reason import Failure
from framework.values.request import ModelRequest


class Stage(Protocol):
    """The replica whose instance is replaced: its two places, and how an instance gets up in one."""

    current: Instance | None
    incoming: Instance | None

    def make(self, request: ModelRequest, *, restarts: int = 0) -> Instance:
        """The next instance, for this request."""
        ...

    async def launch(self, instance: Instance, failure: Failure | None, *, last_try: bool) -> bool:
        """Start what was planned, or note why it was not; whether it is ready."""
        ...

    async def bring_up(self, instance: Instance, cause: str, *, last_try: bool = False) -> bool:
        """Plan and start; whether it is ready."""
        ...


class Replacement:
    """Replaces instances of one replica, one at a time."""

    def __init__(
        self,
        stage: Stage,
        request: Callable[[], ModelRequest],
        starting: Starting,
        ending: Ending,
        voice: Voice,
        ledger: Ledger,
        changed: Callable[[], None],
    ) -> None:
        self.last_good: ModelRequest | None = None
        """What was served last, to go back to."""
        self._stage = stage
        self._request = request
        self._starting = starting
        self._ending = ending
        self._voice = voice
        self._ledger = ledger
        self._changed = changed

    async def run(self, old: Instance, cause: str) -> None:
        """Plan the request of now, stop the old, start the new (07 §4.4). REQUIRES: `old` serves."""
        began = time.monotonic()
        new = self._stage.incoming = self._stage.make(self._request())
        self._changed()
        try:
            failure = await self._starting.get_ready(new, cause, frozenset({old.name}))
            if failure is not None:
                # 07 §4.2: a refusal costs the serving instance nothing.
                old.last_error = still_serving(failure.reason)
                self._voice.refused_replacement(failure)
                return
            await self._ending.retire(old, Stop("drain", "instance_replaced", cause), successor=new)
            self._stage.current, self._stage.incoming = new, None
            # 07 §4.4: planned again, with what the old one gave back.
            failure = await self._starting.plan(new)
            can_roll_back = roll_back_to(self.last_good, self._request()) is not None
            ready = await self._stage.launch(new, failure, last_try=can_roll_back)
        except BaseException:
            self._ledger.release(new, had_process=False)
            ended_early(new)
            raise
        finally:
            self._stage.incoming = None
        if ready:
            self._voice.replaced(old.name, new.name, time.monotonic() - began)
        else:
            await self._roll_back(new)

    async def _roll_back(self, failed: Instance) -> None:
        """07 §4.6: start what served before, once; the wanted request stays recorded."""
        earlier = roll_back_to(self.last_good, self._request())
        if earlier is None:
            return
        instance = self._stage.current = self._stage.make(earlier)
        if await self._stage.bring_up(instance, "rolling back", last_try=True):
            reason = failed.last_error
            instance.last_error = still_serving(reason) if reason else None
            self._voice.rolled_back(reason)

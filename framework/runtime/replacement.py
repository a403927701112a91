"""Put another instance in the place of one that serves (07 §4).

Where the memory allows it the new one starts beside the old one and takes over once it is ready, so that no
request waits; else the old one finishes what it answers and ends first. It serves until the new one is
planned in any case, so that a refusal costs nothing. Called by runtime.replica, as one of its operations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from framework.runtime import slot_saving
from framework.runtime.ending import Ending, Stop
from framework.runtime.instance import Instance
from framework.runtime.outgoing import Outgoing
from framework.runtime.past import roll_back_to
from framework.runtime.plan_changes import plan_changes
from framework.runtime.shielded import finish
from framework.runtime.shop import Shop
from framework.runtime.slot_saving import Patience, is_continued
from framework.runtime.starting import AnotherPlanNeeded, Starting, ended_early
from framework.runtime.voice import Strategy, Voice, still_serving
from framework.values.plan import Withheld
from framework.values.reason import Failure
from framework.values.request import ModelRequest


class Stage(Protocol):
    """The replica whose instance is replaced: its places, and how an instance gets up in one."""

    current: Instance | None
    incoming: Instance | None
    outgoing: Outgoing

    def make(self, request: ModelRequest, *, restarts: int = 0) -> Instance:
        """The next instance, for this request."""
        ...

    async def launch(
        self, instance: Instance, failure: Failure | None, *, last_try: bool, as_planned: bool = False
    ) -> bool:
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
        shop: Shop,
        changed: Callable[[], None],
    ) -> None:
        self.last_good: ModelRequest | None = None
        """What was served last, to go back to."""
        self._stage = stage
        self._request = request
        self._starting = starting
        self._ending = ending
        self._voice = voice
        self._shop = shop
        self._changed = changed

    async def run(self, old: Instance, cause: str, *, only_if_changed: bool = False) -> None:
        """Plan the request of now; start it beside the old one and switch, or after it. `only_if_changed`:
        where the plan is another one. REQUIRES: `old` serves."""
        began_s = time.monotonic()
        new = await self._plan(old, cause)
        if new is not None and only_if_changed and not self._is_changed(old, new):
            return
        if new is not None and not await self._is_alone(old, new):
            return
        if new is not None and await self._fits_beside(new):
            try:
                await self._surge(old, new, cause, began_s)
                return
            except AnotherPlanNeeded as needed:
                self._voice.not_beside(needed.failure.reason)
                new = await self._plan(old, cause, needed.withheld)
        if new is not None:
            await self._stop_first(old, new, cause, began_s)

    async def _plan(self, old: Instance, cause: str, withheld: Withheld | None = None) -> Instance | None:
        """The new instance, planned for when `old` has gone; None where that is refused."""
        new = self._stage.incoming = self._stage.make(self._request())
        new.withheld = withheld or new.withheld
        self._changed()
        with self._given_up(new):
            failure = await self._starting.get_ready(new, cause, frozenset({old.name}))
            if failure is None:
                return new
        self._refused(old, failure)
        return None

    def _is_changed(self, old: Instance, new: Instance) -> bool:
        """Whether the new plan is another one; told, and where it is not nothing is left of the new one."""
        changes = plan_changes(old.plan, new.plan) if old.plan is not None and new.plan is not None else []
        self._voice.replanned(old.name, changes)
        if not changes:
            self._stage.incoming = None
            self._shop.ledger.release(new, had_process=False)
            ended_early(new, "planned anew, and the plan is the same")
            self._changed()
        return bool(changes)

    def _refused(self, old: Instance, failure: Failure) -> bool:
        """07 §4.2: a refusal costs the serving instance nothing."""
        self._stage.incoming = None
        old.last_error = still_serving(failure.reason)
        self._voice.replacement_failed(failure.reason)
        return False

    async def _fits_beside(self, new: Instance) -> bool:
        with self._given_up(new):
            return await self._starting.fits_beside(new)

    async def _is_alone(self, old: Instance, new: Instance) -> bool:
        """07 §1.1: beside `old` nobody else of the replica lives when the new one starts. What still answers
        is waited for, never cut; whether the new one can start then, as far as plans go."""
        if not self._stage.outgoing.instances:
            return True
        self._voice.waits_for(self._stage.outgoing.instances)
        # Nothing is kept from others meanwhile.
        self._shop.ledger.release(new, had_process=False)
        with self._given_up(new):
            while self._stage.outgoing.instances:
                await self._stage.outgoing.settled()
        return await self._is_planned_again(old, new)

    async def _surge(self, old: Instance, new: Instance, cause: str, began_s: float) -> None:
        """Start it beside the old one, which serves on where that fails (07 §4.3, §4.6). Raises
        AnotherPlanNeeded, with nothing left of the new one."""
        if is_continued(old, new):
            new.before_slots = partial(self._save_slots, old)
        with self._given_up(new):
            try:
                ready = await self._stage.launch(new, None, last_try=True, as_planned=True)
            except AnotherPlanNeeded:
                await finish(self._ending.clean(new))
                raise
        self._stage.incoming = None
        if ready:
            # One turn of the loop: whoever asks from here on gets the new one.
            self._stage.current = new
            self._stage.outgoing.begin(old, cause)
            self._replaced(old, new, began_s, "surge")
        elif (reason := new.last_error) is not None:
            old.last_error = still_serving(reason)
            self._voice.replacement_failed(reason)
        self._changed()

    async def _save_slots(self, old: Instance) -> None:
        """For the new one, just before it takes over. Not while it answers: an engine saves the slot of an
        answer once that has ended, however late that is (07 §11.10)."""
        patience = Patience(lambda: bool(old.leases), has_saved=True)
        await slot_saving.save(self._shop.site(old), old, self._voice, patience)

    async def _stop_first(self, old: Instance, new: Instance, cause: str, began_s: float) -> None:
        """Stop the old one, start the new one, or go back; one at a time in a pool (07 §4.4, §4.8)."""
        turn = self._shop.swaps[new.request.pool.name]
        if has_waited := turn.locked():
            # Nothing is kept from others, whoever's turn it is among them, while it waits.
            self._shop.ledger.release(new, had_process=False)
        async with turn:
            if has_waited and not await self._is_planned_again(old, new):
                return
            with self._given_up(new):
                await self._ending.retire(old, Stop("drain", "instance_replaced", cause), successor=new)
                self._stage.current, self._stage.incoming = new, None
                # 07 §4.4: planned again, with what the old one gave back.
                failure = await self._starting.plan(new)
                ready = await self._stage.launch(new, failure, last_try=self.can_roll_back)
            if ready:
                self._replaced(old, new, began_s, "stop_first")
            else:
                await self.roll_back(new)

    async def _is_planned_again(self, old: Instance, new: Instance) -> bool:
        with self._given_up(new):
            failure = await self._starting.plan(new, frozenset({old.name}))
        return failure is None or self._refused(old, failure)

    @property
    def can_roll_back(self) -> bool:
        """Whether something else served before than what is wanted, and may again."""
        return roll_back_to(self.last_good, self._request()) is not None

    async def roll_back(self, failed: Instance) -> None:
        """07 §4.6: start what served before, once; the wanted request stays recorded."""
        earlier = roll_back_to(self.last_good, self._request())
        if earlier is None:
            return
        instance = self._stage.current = self._stage.make(earlier)
        if await self._stage.bring_up(instance, "rolling back", last_try=True):
            reason = failed.last_error
            instance.last_error = still_serving(reason) if reason else None
            self._voice.rolled_back(reason)

    def _replaced(self, old: Instance, new: Instance, began_s: float, strategy: Strategy) -> None:
        self._voice.replaced(old.name, new.name, time.monotonic() - began_s, strategy)

    @contextmanager
    def _given_up(self, new: Instance) -> Iterator[None]:
        """However this ends early, nothing is left of the new one, nor set aside for it."""
        try:
            yield
        except BaseException:
            self._shop.ledger.release(new, had_process=False)
            ended_early(new)
            self._stage.incoming = None
            raise

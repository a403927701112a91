"""The instances of a replica, one after the other (07 §1.1). Called by runtime.replica."""

from __future__ import annotations

from collections.abc import Callable

from framework.runtime.adoption import LeftBehind
from framework.runtime.demotion import Demotion
from framework.runtime.instance import Instance
from framework.runtime.logs import LogBuffer
from framework.runtime.shop import Shop
from framework.values.naming import instance_name
from framework.values.request import ModelRequest
from framework.values.spec_yield import AnswerSpeed


class Generations:
    """Makes them, numbered from 1."""

    def __init__(
        self, replica: int, shop: Shop, demotion: Demotion, on_answer: Callable[[AnswerSpeed], None]
    ) -> None:
        """`on_answer` is told of each answer whose speed is known."""
        self._replica = replica
        self._on_answer = on_answer
        self._shop = shop
        self._demotion = demotion
        self._last = 0
        self.log = LogBuffer()
        """What the processes of all of them print."""
        self.newest: str | None = None
        """Name of the last one made."""
        self.epoch: Callable[[], int] = lambda: 0
        """Which command the events of now belong to (07 §12.3); set by the replica."""

    def new(self, request: ModelRequest, *, restarts: int, expected_load_s: float | None) -> Instance:
        """The next one, without what its predecessors showed that it must not have."""
        self._last += 1
        while instance_name(request.id, self._replica, self._last) in self._shop.left_alone:
            self._last += 1
        instance = self._make(request, restarts)
        instance.expected_load_s = expected_load_s
        instance.withheld = self._demotion.withheld(request)
        return instance

    def known(self, left: LeftBehind) -> Instance:
        """One that an earlier manager made; the next one is numbered after it."""
        self._last = left.record.generation
        return self._make(left.request, left.committed.restarts)

    def _make(self, request: ModelRequest, restarts: int) -> Instance:
        instance = Instance(
            request,
            self._replica,
            self._last,
            events=self._shop.events,
            restarts=restarts,
            on_idle=self._shop.admission.rests,
            on_answer=self._on_answer,
            epoch=self.epoch,
            log=LogBuffer(within=self.log),
        )
        self.newest = instance.name
        return instance

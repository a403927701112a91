"""Look again for drafters that could not be had when their models started (05 §9.4, 07 §13.4).

One task of the fleet. What is found is downloaded and told, and nothing else happens: an unchanged manifest
never restarts a model, and `paddock reload` uses the file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

from framework.runtime.fetching import has_drafter_of_its_own, named_drafter
from framework.runtime.instance import Instance
from framework.runtime.shop import Shop
from framework.values.reason import Reason, Refused
from framework.values.request import ModelRequest, ModelSource

log = logging.getLogger(__name__)

PERIOD_S = 1.0
MISSING, AVAILABLE = "drafter_not_found", "drafter_available"

_Key = tuple[str, ModelSource, ModelSource | None]
"""A model, its source, and the drafter that its policy names."""


class DrafterWatch:
    """One search for each model that serves without its drafter; replicas share it."""

    def __init__(self, instances: Callable[[], Iterable[Instance]], shop: Shop) -> None:
        self._instances = instances
        self._shop = shop
        self._searches: dict[_Key, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Search until cancelled."""
        try:
            while True:
                self._look()
                await asyncio.sleep(PERIOD_S)
        finally:
            tasks = list(self._searches.values())
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    def _look(self) -> None:
        """Begin what is new, and end what nobody waits for any more."""
        lacking = {_key(instance.request): instance.request for instance in self._lacking()}
        for key in self._searches.keys() - lacking.keys():
            self._searches.pop(key).cancel()
        for key in lacking.keys() - self._searches.keys():
            self._searches[key] = asyncio.create_task(self._search(key, lacking[key]))

    def _lacking(self) -> Iterator[Instance]:
        return (instance for instance in self._instances() if instance.serving and _lacks_drafter(instance))

    async def _search(self, key: _Key, request: ModelRequest) -> None:
        try:
            pauses_s = self._shop.drafter_pauses_s
            for pause_s in chain(pauses_s, repeat(pauses_s[-1])):
                await asyncio.sleep(pause_s)
                drafter = await self._find(request)
                if drafter is not None:
                    self._tell(key, drafter)
                    return
        except Exception:
            log.exception("looking for the drafter of %s", request.id)

    async def _find(self, request: ModelRequest) -> Path | None:
        try:
            return (await self._shop.planner.fetch(request, _ignore)).drafter
        except Refused as refusal:
            log.info("the drafter of %s: %s", request.id, refusal)
            return None

    def _tell(self, key: _Key, drafter: Path) -> None:
        """One event for the model, and a reason at each instance that runs without."""
        reason = available(key[0], drafter)
        for instance in self._lacking():
            if _key(instance.request) == key and instance.result is not None:
                degradations = (*instance.result.degradations, reason)
                instance.result = replace(instance.result, degradations=degradations)
        self._shop.events.record("drift", reason.message, model=key[0], reason=reason)


def available(model: str, drafter: Path) -> Reason:
    """The drafter is here now, and the process runs without it."""
    return Reason(
        "drafter_available",
        f"The drafter {drafter.name} is here now; the process that runs was started without it.",
        f"`paddock reload {model}` uses it.",
        evidence={"path": str(drafter)},
    )


def _ignore(_: object) -> None:
    """Nobody watches."""


def _key(request: ModelRequest) -> _Key:
    return request.id, request.source, request.spec.drafter


def _lacks_drafter(instance: Instance) -> bool:
    """Whether it runs without a drafter that a hub may have, and nobody told yet that it is here."""
    plan, result, request = instance.plan, instance.result, instance.request
    if plan is None or result is None or plan.spec.reason is None or plan.spec.reason.code != MISSING:
        return False
    if named_drafter(request) is None and not has_drafter_of_its_own(request):
        return False
    return all(reason.code != AVAILABLE for reason in result.degradations)

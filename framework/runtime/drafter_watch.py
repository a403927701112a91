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

from framework.models.hub.pins import ask_again
from framework.planning.speculation.drafter_source import has_drafter_of_its_own
from framework.runtime.fetching import named_drafter
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
        # Cancelled, and perhaps still ending a download process: `run` does not return before them.
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Search until cancelled."""
        try:
            while True:
                self._look()
                await asyncio.sleep(PERIOD_S)
        finally:
            for key in list(self._searches):
                self._end(key)
            if self._ending:
                await asyncio.wait(self._ending)

    def _look(self) -> None:
        """Begin what is new, and end what nobody waits for any more."""
        lacking = {_key(instance.request): instance.request for instance in self._lacking()}
        ended = {key for key, search in self._searches.items() if search.done()}
        for key in ended | (self._searches.keys() - lacking.keys()):
            self._end(key)
        for key in lacking.keys() - self._searches.keys():
            self._searches[key] = asyncio.create_task(self._search(key, lacking[key]))

    def _end(self, key: _Key) -> None:
        search = self._searches.pop(key)
        search.cancel()
        self._ending.add(search)
        search.add_done_callback(self._ending.discard)

    def _lacking(self) -> Iterator[Instance]:
        return (instance for instance in self._instances() if instance.serving and _lacks_drafter(instance))

    async def _search(self, key: _Key, request: ModelRequest) -> None:
        """Until it is here and told. Whatever goes wrong with one look, there is another one."""
        pauses_s = self._shop.drafter_pauses_s
        for pause_s in chain(pauses_s, repeat(pauses_s[-1])):
            await asyncio.sleep(pause_s)
            try:
                drafter = await self._find(request)
            except Refused as refusal:
                log.info("the drafter of %s: %s", request.id, refusal)
            except Exception:
                log.exception("looking for the drafter of %s", request.id)
            else:
                if drafter is not None:
                    self._tell(key, drafter)
                    return

    async def _find(self, request: ModelRequest) -> Path | None:
        """The drafter that a start would use now. Raises Refused."""
        for main in self._mains(request.id):
            await asyncio.to_thread(ask_again, main)
        source = await self._shop.planner.fetch(request, _ignore)
        if source.drafter is None:
            return None
        # One that does not belong to the model would be told for nothing.
        spec = (await self._shop.planner.prepare(request, 0, source)).launch.plan.spec
        if spec.drafter is None:
            why = spec.reason.message if spec.reason is not None else ""
            log.info("%s is here, and %s would not use it: %s", source.drafter, request.id, why)
            return None
        return Path(spec.drafter)

    def look_again(self, model: str) -> None:
        """Let the next start of a model ask for what its repository was found to lack, as reload wants it."""
        for main in self._mains(model):
            ask_again(main)

    def _mains(self, model: str) -> set[Path]:
        """The files that a model's instances were started with, as far as they are known."""
        mine = (instance.source for instance in self._instances() if instance.request.id == model)
        return {source.main for source in mine if source is not None}

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
    """Whether it runs without a drafter that a hub may have, and nobody told yet that it is here.

    One that was here when it started, and was not used, is nothing to look for.
    """
    plan, result, request, source = instance.plan, instance.result, instance.request, instance.source
    if plan is None or result is None or plan.spec.reason is None or plan.spec.reason.code != MISSING:
        return False
    if source is None or source.drafter is not None:
        return False
    if named_drafter(request) is None and not has_drafter_of_its_own(request):
        return False
    return all(reason.code != AVAILABLE for reason in result.degradations)

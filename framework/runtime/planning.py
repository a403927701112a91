"""What starts need of the planner (runtime.planner), so that tests can put other facts behind it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from framework.hardware.devices import DeviceList
from framework.runtime.planner import Prepared
from framework.runtime.question import Places


class Planning(Places, Protocol):
    """Devices as they are, and plans for them."""

    async def look(self, prepared: Prepared, *, fresh: bool = False) -> DeviceList:
        """The devices of a launch as they are listed now or, unless `fresh`, were a moment ago."""
        ...

    async def until_quiet(self, endpoints: Collection[str]) -> None:
        """Wait until nobody asks these servers for their devices any more."""
        ...

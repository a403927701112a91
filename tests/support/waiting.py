"""Wait for something that another process brings about, with a limit and a readable failure."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
POLL_S = 0.02


def wait_until(predicate: Callable[[], T], timeout_s: float = 10.0, what: str = "the condition") -> T:
    """The first true value of `predicate`. Fails with `what` and the last value when time is up."""
    deadline = time.monotonic() + timeout_s
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s for {what}; last seen: {value!r}")
        time.sleep(POLL_S)
    return value


async def eventually(predicate: Callable[[], T], timeout_s: float = 10.0, what: str = "the condition") -> T:
    """As `wait_until`, for tests that share their event loop with what they wait for."""
    deadline = time.monotonic() + timeout_s
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s for {what}; last seen: {value!r}")
        await asyncio.sleep(POLL_S)
    return value


def unused_port() -> int:
    """A loopback port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
